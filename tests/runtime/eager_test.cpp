// Large operations outside jit run as compiled code.
#include "ops/random.h"
#include "ops/records.h"
#include "runtime/difference.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <thread>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

namespace {

Array values(const rp::Shape& shape, rp::Dtype dtype = rp::float32) {
  return rp::random::normal(rp::random::PRNGKey(1), shape).astype(dtype);
}

// As the primitive's own evaluator has it.
Array evaluated(const rp::Primitive& prim, const Arrays& x, const rp::Params& params,
                const rp::Type& type) {
  return prim.eval(x, params, {type})[0];
}
void check_close(const Array& got, const Array& expected, double tolerance) {
  REQUIRE(got.type() == expected.type());
  CHECK(largest_difference(got, expected) <= tolerance);
}

}  // namespace

TEST_CASE("large operations agree with the evaluator") {
  const Array x = values({300, 500}), y = values({500, 300});
  const rp::Type same = x.type();
  check_close(rp::sin(x), evaluated(rp::sin_p, {x}, {{"accuracy", rp::None{}}}, same), 1e-6);
  check_close(x * x, evaluated(rp::mul_p, {x, x}, {}, same), 0);
  const Array z = values({400, 400}), exponent = rp::array(2.0f);
  check_close(rp::lax::pow(rp::abs(z), exponent),
              evaluated(rp::pow_p, {rp::abs(z), exponent}, {}, z.type()), 1e-6);
  const rp::Params params{{"dimension_numbers", rp::DotDims{{1}, {0}, {}, {}}},
                          {"preferred_element_type", rp::float32}};
  check_close(rp::matmul(x, y),
              evaluated(rp::dot_general_p, {x, y}, params, rp::Type{rp::float32, {300, 300}}),
              1e-5);
}

TEST_CASE(
    "large operations that move or order elements do with all what the evaluator does with some") {
  constexpr std::int64_t rows = 400, some = 50;
  const Array x = rp::round(values({rows, 500}) * 20.0f), key = rp::random::PRNGKey(2);
  const Array of_rows = rp::random::randint(key, {rows}, -50, 450),
              of_columns = rp::random::randint(key, {rows, 500}, -10, 510);
  const auto first = [](const Array& v, std::size_t axis = 0) {
    rp::Shape end = v.shape();
    end[axis] = some;
    return rp::lax::slice(v, rp::Shape(end.size(), 0), end);
  };
  const auto check = [](const Array& got, const Array& expected) {
    REQUIRE(got.type() == expected.type());
    CHECK(largest_difference(got, expected) == 0);
  };
  check(first(rp::transpose(x), 1), rp::transpose(first(x)));
  check(first(rp::argmax(x, 1)), rp::argmax(first(x), 1));
  check(first(rp::argmin(x, 0)), rp::argmin(first(x, 1), 0));
  check(first(rp::sort(x, 1)), rp::sort(first(x), 1));
  check(first(rp::argsort(x, 0), 1), rp::argsort(first(x, 1), 0));
  check(first(rp::take(x, of_rows, 0)), rp::take(x, first(of_rows), 0));
  check(first(rp::take_along_axis(x, of_columns, 1)),
        rp::take_along_axis(first(x), first(of_columns), 1));
  const auto added = rp::grad([](Array v, Array r) { return rp::sum(rp::take(v, r, 0) * v); });
  check(first(added(x, of_rows), 1), added(first(x, 1), of_rows));
}

TEST_CASE("large reductions and running sums are those of their parts") {
  const Array x = values({400, 500});
  // each evaluated
  const auto top = rp::lax::slice(x, {0, 0}, {200, 500}),
             bottom = rp::lax::slice(x, {200, 0}, {400, 500});
  const auto exact = [](const Array& got, const Array& expected) {
    CHECK(got.to_vector<float>() == expected.to_vector<float>());
  };
  exact(rp::max(x, 0), rp::maximum(rp::max(top, 0), rp::max(bottom, 0)));
  exact(rp::min(x), rp::minimum(rp::min(top), rp::min(bottom)));
  exact(rp::max(x, 1), rp::concatenate({rp::max(top, 1), rp::max(bottom, 1)}));
  CHECK(rp::all(x < 100.0f).item<bool>());
  CHECK(rp::sum((x > 0.0f).astype(rp::int32)).item<int>() ==
        rp::sum((top > 0.0f).astype(rp::int32) + (bottom > 0.0f).astype(rp::int32)).item<int>());
  check_close(rp::sum(x, 1), rp::concatenate({rp::sum(top, 1), rp::sum(bottom, 1)}), 1e-5);
  check_close(rp::sum(x, 0), rp::sum(top, 0) + rp::sum(bottom, 0), 1e-5);
  check_close(rp::cumsum(x, 1), rp::concatenate({rp::cumsum(top, 1), rp::cumsum(bottom, 1)}), 1e-5);
  CHECK(rp::sum(rp::full({1000, 1000}, 0.1f)).item<float>() ==
        doctest::Approx(100000.0).epsilon(1e-6));
}

TEST_CASE("large draws have the bits of the evaluator") {
  const Array keys = rp::random::split(rp::random::key(7), 3);
  const rp::Type type{rp::uint32, {3, 300, 200}};
  const rp::Params params{{"bit_width", std::int64_t{32}}, {"shape", rp::Ints{300, 200}}};
  const Array drawn = rp::lax::random_bits(keys, 32, {300, 200}),
              expected = evaluated(rp::random_bits_p, {keys}, params, type);
  CHECK(drawn.to_vector<std::uint32_t>() == expected.to_vector<std::uint32_t>());
}

TEST_CASE("large operations keep types, whatever the operands are") {
  const Array x = values({400, 400});
  CHECK((x * 2.0).type() == x.type());
  CHECK((x > 0.0).dtype() == rp::bool_);
  CHECK((x.astype(rp::int32) / 3).dtype() == rp::float32);
  CHECK((x.astype(rp::bfloat16) + x.astype(rp::bfloat16)).dtype() == rp::bfloat16);
  CHECK(rp::argmax(x, 1).to_vector<int>() ==
        rp::jit([](Array v) { return rp::argmax(v, 1); })(x).to_vector<int>());
}

TEST_CASE("what is computed again outside jit is the same, bit for bit") {
  const Array w = 0.05f * values({256, 256}), x = values({600, 256});
  const auto layer = [](Array W, Array v) { return rp::nn::gelu(rp::matmul(v, W)); };
  const auto loss = [layer](Array W, Array v) {
    return rp::sum(rp::checkpoint(layer)(W, rp::checkpoint(layer)(W, v)));
  };
  const rp::RecomputeCheck check = rp::check_recompute(loss, w, x);
  CHECK_MESSAGE(check.ok, check.first_difference);
  CHECK(check.compared > 0);
}

TEST_CASE("threads share the code of large operations") {
  const Array x = values({512, 512});
  const auto expected = rp::cos(x).to_vector<float>();
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (std::size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) same[t] += rp::cos(x).to_vector<float>() == expected ? 1 : 0;
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(same == std::vector<int>(4, 20));
}
