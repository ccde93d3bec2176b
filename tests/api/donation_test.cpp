// Donation: results take over the memory of arguments that nobody else holds.
#include "derivatives.h"

#include <atomic>
#include <sstream>
#include <thread>

namespace {

using namespace check;

struct Params {
  Array w, b;
};

Array filled(rp::Shape shape, float from) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = from + static_cast<float>(i % 17) / 17.f;
  return rp::array(v).reshape(shape);
}

Params descend(Params p, Array x) {
  const auto loss = [x](Params q) { return rp::mean(rp::square(rp::matmul(x, q.w) + q.b)); };
  const Params g = rp::grad(loss)(p);
  return {p.w - 0.1f * g.w, p.b - 0.1f * g.b};
}

const float* address(const Array& a) { return a.data<float>().data(); }

}  // namespace

TEST_CASE("a moved argument's memory becomes the result's, with the same numbers") {
  const auto step = rp::jit(descend, {.donate_argnums = {0}});
  const auto plain = rp::jit(descend);
  const Array x = filled({64, 256}, -0.5f);
  Params p{filled({256, 256}, 0.f), filled({256}, 1.f)},
      q{filled({256, 256}, 0.f), filled({256}, 1.f)};
  for (int i = 0; i < 5; ++i) {
    const float *w = address(p.w), *b = address(p.b);
    p = step(std::move(p), x);
    q = plain(q, x);
    CHECK(address(p.w) == w);
    CHECK(address(p.b) == b);
    CHECK(numbers(p.w) == numbers(q.w));
    CHECK(numbers(p.b) == numbers(q.b));
  }
  const auto memory = step.lower(p, x).compile().memory_analysis();
  CHECK(memory.alias_bytes == 256 * 256 * 4 + 256 * 4);
  CHECK(memory.output_bytes == 0);
  CHECK(memory.copied_donations == 0);
  CHECK(memory.peak_bytes < plain.lower(q, x).compile().memory_analysis().peak_bytes);
}

TEST_CASE("an array that someone else holds never changes") {
  const auto step = rp::jit(descend, {.donate_argnums = {0}});
  const Array x = filled({8, 64}, -0.5f);
  const Params kept{filled({64, 64}, 0.f), filled({64}, 1.f)};
  const auto w = numbers(kept.w), b = numbers(kept.b);
  const Params expected = rp::jit(descend)(kept, x);
  Params p = step(kept, x);  // not moved
  CHECK(numbers(p.w) == numbers(expected.w));
  CHECK(step.lower(kept, x).compile().memory_analysis().copied_donations == 2);
  Params copy = kept;
  p = step(std::move(copy), x);  // moved, but there are other handles
  CHECK(numbers(p.w) == numbers(expected.w));
  CHECK(numbers(kept.w) == w);
  CHECK(numbers(kept.b) == b);
  const auto memory = step.lower(kept, x).compile().memory_analysis();
  CHECK(memory.copied_donations == 4);
  std::ostringstream text;
  text << memory;
  CHECK(text.str().find("outputs in donated arguments 16640, donated arguments copied so far 4") !=
        std::string::npos);
}

TEST_CASE("results of one run are donated one by one") {
  const auto make = rp::jit([](Array v) { return std::pair{v * 2.f, v * 3.f}; });
  const auto grow = rp::jit([](Array v) { return v + 1.f; }, {.donate_argnums = {-1}});
  auto [a, b] = make(filled({200, 200}, 0.f));  // two values in one block of memory
  const auto kept = numbers(b);
  const float* where = address(a);
  a = grow(std::move(a));
  CHECK(address(a) == where);
  CHECK(numbers(b) == kept);
  const Array alias = rp::jit([](Array v) { return v; })(b);  // another handle of the same elements
  const Array c = grow(std::move(b));
  CHECK(numbers(alias) == kept);
  CHECK(address(c) != address(alias));
}

TEST_CASE("memory of the user is not overwritten") {
  alignas(64) static float numbers_of_user[256];
  std::fill(std::begin(numbers_of_user), std::end(numbers_of_user), 1.f);
  const auto grow = rp::jit([](Array v) { return v + 1.f; }, {.donate_argnums = {0}});
  const Array out = grow(rp::view(numbers_of_user, {rp::float32, {256}}, nullptr));
  CHECK(out.data<float>()[7] == 2.f);
  CHECK(numbers_of_user[7] == 1.f);
}

TEST_CASE("an argument is taken over only when it has been read for the last time") {
  const Array x = filled({40, 40}, 0.f), y = filled({40, 40}, 1.f);
  const auto both = [](Array a, Array b) {
    return std::pair{rp::matmul(a, b), rp::sin(a) + rp::transpose(b)};
  };
  const auto expected = rp::jit(both)(x, y);
  const auto f = rp::jit(both, {.donate_argnums = {0, 1}});
  for (int i = 0; i < 3; ++i) {
    const auto [product, sum] = f(filled({40, 40}, 0.f), filled({40, 40}, 1.f));
    CHECK(numbers(product) == numbers(expected.first));
    CHECK(numbers(sum) == numbers(expected.second));
  }
  // An argument that is returned stays what it is.
  const auto same = rp::jit([](Array a) { return std::pair{a, a * 2.f}; }, {.donate_argnums = {0}});
  const auto [a, twice] = same(filled({40, 40}, 0.f));
  CHECK(numbers(a) == numbers(x));
  CHECK(twice.data<float>()[3] == 2 * x.data<float>()[3]);
}

TEST_CASE("functions of const references and compiled functions take donations") {
  const auto grow = rp::jit([](const Array& v) { return v + 1.f; }, {.donate_argnums = {0}});
  Array a = filled({100, 10}, 0.f);
  const float* where = address(a);
  a = grow(std::move(a));
  CHECK(address(a) == where);
  const auto compiled = grow.lower(a).compile();
  a = compiled(std::move(a));
  CHECK(address(a) == where);
  CHECK(compiled.memory_analysis().copied_donations == 0);
}

TEST_CASE("donate_argnums must be numbers of arguments") {
  const auto f = rp::jit([](Array a, Array b) { return a + b; }, {.donate_argnums = {2}});
  CHECK_THROWS_WITH_AS(
      f(1.f, 2.f),
      doctest::Contains("jit: donate_argnums must be numbers of arguments, got 2 for 2 arguments"),
      rp::TypeError);
  const auto g = rp::jit([](Array a, Array b) { return a + b; }, {.donate_argnums = {-3}});
  CHECK_THROWS_AS(g(1.f, 2.f), rp::TypeError);
}

TEST_CASE("threads donate what others have read before") {
  const auto grow = rp::jit([](Array v) { return v + 1.f; }, {.donate_argnums = {0}});
  grow(filled({64, 64}, 0.f));
  for (int round = 0; round < 20; ++round) {
    Array shared = filled({64, 64}, 0.f);
    const auto before = numbers(shared);
    std::atomic<int> wrong{0};
    std::thread reader([mine = shared, &before, &wrong]() mutable {
      wrong += numbers(mine) != before;
      mine = Array();
    });
    const Array out = grow(std::move(shared));
    wrong += out.data<float>()[5] != static_cast<float>(before[5]) + 1.f;
    reader.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("of two results in one place neither is given away while the other lives") {
  const auto twice = rp::jit([](Array x) {
    const Array y = x + 1.f;
    return std::tuple{y, y, y.reshape({-1})};
  });
  const auto step = rp::jit([](Array y) { return y * 2.f; }, {.donate_argnums = {0}});
  for (const std::int64_t n : {4, 256}) {  // a buffer of its own, the result block
    auto [a, b, c] = twice(filled({n, n}, 0.f));
    const auto before = numbers(b);
    const Array doubled = step(std::move(a));
    CHECK(numbers(b) == before);
    CHECK(numbers(c) == before);
    CHECK(numbers(doubled)[1] == 2 * before[1]);
  }
}

TEST_CASE("a donated scalar that someone else holds keeps its value") {
  const auto step = rp::jit([](Array count) { return count + 1; }, {.donate_argnums = {0}});
  Array count = rp::full({}, 0, rp::int32);
  for (int i = 0; i < 4; ++i) count = step(std::move(count));
  const Array kept = count;
  CHECK(step(std::move(count)).item<int>() == 5);
  CHECK(kept.item<int>() == 4);
}
