// The rules of collectives, on as many ranks as there are: values by formulas, derivatives against
// differences and against each other, vmap against a loop, compiled code against evaluation.
#include <reprise/dist.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace reprise;
using P = PartitionSpec;

namespace {

std::int64_t ranks() { return dist::size(); }
Mesh all_ranks() { return Mesh({{"x", ranks()}}); }

// Other numbers at each place, the same on every rank.
Array numbers(Shape shape, double seed = 0) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + seed)));
  return array(values, shape);
}
void check_near(const Array& a, const Array& b, double tolerance = 1e-5) {
  REQUIRE(a.shape() == b.shape());
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(x[i] == doctest::Approx(y[i]).epsilon(tolerance).scale(1));
}

struct Case {
  const char* name;
  Shape shape;  // of the whole argument, of which each rank has a part along the first axis
  std::function<Array(Array)> on_part;
  P out;
};
std::vector<Case> cases() {
  const std::int64_t n = ranks();
  std::vector<std::pair<std::int64_t, std::int64_t>> turn, some;
  for (std::int64_t i = 0; i < n; ++i) turn.emplace_back(i, (i + 1) % n);
  if (n > 1) some = {{0, 1}};
  return {
      {"psum", {n * 2, 3}, [](Array x) { return lax::psum(x, "x"); }, P()},
      {"pmean", {n * 2, 3}, [](Array x) { return lax::pmean(x, "x"); }, P()},
      {"all_gather", {n * 2, 3}, [](Array x) { return lax::all_gather(x, "x"); }, P("x")},
      {"all_gather 1",
       {n * 2, 3},
       [](Array x) { return lax::all_gather(x, "x", {.axis = 1}); },
       P("x")},
      {"all_gather tiled",
       {n * 2, 3},
       [](Array x) { return lax::all_gather(x, "x", {.axis = 1, .tiled = true}); },
       P("x")},
      {"psum_scatter", {n * n, 3}, [](Array x) { return lax::psum_scatter(x, "x"); }, P("x")},
      {"psum_scatter tiled",
       {n * 2, 2 * n},
       [](Array x) { return lax::psum_scatter(x, "x", {.scatter_dimension = 1, .tiled = true}); },
       P("x")},
      {"ppermute", {n * 2, 3}, [turn](Array x) { return lax::ppermute(x, "x", turn); }, P("x")},
      {"ppermute some",
       {n * 2, 3},
       [some](Array x) { return lax::ppermute(x, "x", some); },
       P("x")},
      {"all_to_all", {n * 2, n}, [](Array x) { return lax::all_to_all(x, "x", 1, 0); }, P("x")},
      {"all_to_all tiled",
       {n * 2, 2 * n},
       [](Array x) { return lax::all_to_all(x, "x", 1, 0, {.tiled = true}); },
       P("x")},
      {"pvary",
       {n * 2, 3},
       [](Array x) {
         const Array all = lax::psum(x, "x");
         const Array again = lax::pvary(all, "x");
         return again * x;
       },
       P("x")},
  };
}
auto mapped(const Case& c) {
  const auto f = c.on_part;
  return shard_map([f](Array x) { return f(x); }, all_ranks(), P("x"), c.out);
}

}  // namespace

TEST_CASE("values are what the definitions say") {
  const std::int64_t n = ranks();
  const Array x = numbers({2 * n, 3});
  const Array parts = x.reshape({n, 2, 3});
  const Mesh mesh = all_ranks();
  const auto run = [&](auto f, P out) { return shard_map(f, mesh, P("x"), out)(x); };
  check_near(run([](Array a) { return lax::psum(a, "x"); }, P()), sum(parts, 0));
  check_near(run([](Array a) { return lax::pmax(a, "x"); }, P()), max(parts, 0));
  check_near(run([](Array a) { return lax::pmin(a, "x"); }, P()), min(parts, 0));
  check_near(run([](Array a) { return lax::pmean(a, "x"); }, P()), mean(parts, 0));
  const Array gathered =
      run([](Array a) { return lax::all_gather(a, "x", {.tiled = true}); }, P("x"));
  check_near(gathered, tile(x, {n, 1}));
  const Array index = run([](Array a) { return 0 * sum(a, 1) + lax::axis_index("x"); }, P("x"));
  check_near(index, repeat(arange(n), 2).astype(float32));
  CHECK(run([](Array a) { return a + lax::psum(1.0, "x"); }, P("x")).shape() == x.shape());
  CHECK(
      shard_map([](Array a) { return a * lax::axis_size("x"); }, mesh, P("x"), P("x"))(x).shape() ==
      x.shape());
}

TEST_CASE("compiled code gives the values of evaluation") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Array x = numbers(c.shape);
    check_near(jit(mapped(c))(x), mapped(c)(x), 1e-6);
  }
}

TEST_CASE("derivatives agree with differences and with each other") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const auto f = mapped(c);
    const auto g = [f](Array x) {
      const Array s = sin(x);
      return f(s);
    };
    const Array x = numbers(c.shape), t = numbers(c.shape, 1);
    const auto [y, dy] = jvp(g, std::tuple{x}, std::tuple{t});
    const double h = 1e-2;
    const Array above = g(x + h * t), below = g(x - h * t);
    check_near(dy, (above - below) / (2 * h), 2e-3);
    const Array ct = numbers(y.shape(), 2);
    const auto back = std::get<0>(vjp(g, x).second(ct));
    CHECK(sum(ct * dy).item<double>() ==
          doctest::Approx(sum(back * t).item<double>()).epsilon(1e-4));
  }
}

TEST_CASE("vmap is a loop, outside and inside") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const auto f = mapped(c);
    Shape shape = c.shape;
    shape.insert(shape.begin(), 3);
    const Array x = numbers(shape);
    const Array y = vmap(f)(x);
    for (std::int64_t i = 0; i < 3; ++i) check_near(y[i], f(x[i]), 1e-6);
    shape = c.shape;
    shape.insert(shape.begin() + 1, 3);
    const Array z = numbers(shape);
    const auto on_part = c.on_part;
    const auto inside = shard_map(
        [on_part](Array a) {
          return vmap([on_part](Array b) { return on_part(b); }, {.in_axes = 1, .out_axes = 1})(a);
        },
        all_ranks(), P("x"), c.out);
    const Array w = inside(z);
    for (std::int64_t i = 0; i < 3; ++i) check_near(w(all, i), f(z(all, i)), 1e-6);
  }
}

TEST_CASE("sums of other dtypes") {
  const std::int64_t n = ranks();
  const auto f = shard_map([](Array a) { return lax::psum(a, "x"); }, all_ranks(), P("x"), P());
  for (const Dtype d : {float64, float16, bfloat16, int32, int64, uint8}) {
    const Array x = ones({n * 2}).astype(d);
    CHECK(f(x).dtype() == d);
    CHECK(f(x).to_vector<double>() == std::vector<double>(2, static_cast<double>(n)));
  }
}

TEST_CASE("a weight that is the same everywhere gets the sum of its gradients") {
  const std::int64_t n = ranks();
  const Array w = numbers({3}), x = numbers({2 * n, 3});
  const auto loss = [](Array a, Array b) { return sum(sin(a * b)); };
  const auto step = shard_map(
      [loss](Array a, Array b) {
        const Array part = loss(a, b);
        return lax::psum(part, "x");
      },
      all_ranks(), {P(), P("x")}, P());
  check_near(grad(step)(w, x), grad(loss)(w, x));
  // the gradient taken inside is the same one
  const auto inside = shard_map([loss](Array a, Array b) { return grad(loss)(a, b); }, all_ranks(),
                                {P(), P("x")}, P());
  check_near(inside(w, x), grad(loss)(w, x));
}

TEST_CASE("parts stay with their ranks") {
  const std::int64_t n = ranks();
  const Mesh mesh = all_ranks();
  const Array x = numbers({2 * n, 3});
  const Array part = shard(x, mesh, P("x"));
  CHECK(part.shape() == Shape{2, 3});
  CHECK(to_string(part.type()) == "f32[2,3]{V:x}");
  check_near(unshard(part, mesh, P("x")), x, 1e-7);
  const auto doubled = shard_map([](Array a) { return 2 * a; }, mesh, P("x"), P("x").local());
  const Array twice = jit(doubled)(part);
  CHECK(to_string(twice.type()) == "f32[2,3]{V:x}");
  check_near(unshard(twice, mesh, P("x")), 2 * x, 1e-7);
  check_near(unshard(doubled(x), mesh, P("x")), 2 * x, 1e-7);
}

TEST_CASE("cond and loops on values of each rank") {
  const std::int64_t n = ranks();
  const Array x = numbers({2 * n, 3});
  const auto f = [](Array w, Array a) {
    const Array first = lax::axis_index("x") < 1;
    return cond(
        first, [](Array u, Array v) { return sin(u * v); },
        [](Array u, Array) {
          return u + zeros({2, 3});
        },
        w, a);
  };
  const auto whole = shard_map(f, all_ranks(), {P(), P("x")}, P("x"));
  const Array w = numbers({3}, 3);
  const auto expected = [&](Array u) {
    const Array head = sin(u * x[slice(0, 2)]);
    if (n == 1) return head;
    const Array tail = u + zeros({2 * n - 2, 3});
    return concatenate({head, tail});
  };
  check_near(whole(w, x), expected(w));
  const auto energy = [](auto g) { return [g](Array u) { return sum(square(g(u))); }; };
  const auto of_w = [&](Array u) { return whole(u, x); };
  check_near(grad(energy(of_w))(w), grad(energy(expected))(w));
  check_near(jit(grad(energy(of_w)))(w), grad(energy(expected))(w));
  // a carry that begins the same everywhere and does not stay so
  const auto loop = shard_map(
      [](Array a) {
        const auto body = [](Array c, Array row) { return std::pair(c + sin(row), none); };
        return scan(body, zeros({3}), a).first;
      },
      all_ranks(), P("x"), P("x"));
  CHECK(loop(x).shape() == Shape{3 * n});
}

TEST_CASE("communicated bytes are those of the policy") {
  const AbstractMesh paper({{"data", 64}});
  const auto bytes = [&](const CheckpointOptions& options) {
    const auto model = [options](Array w, Array x) {
      const auto block = checkpoint(
          [](Array part, Array h) {
            Array whole = lax::all_gather(part, "data", {.tiled = true});
            whole = checkpoint_name(whole, "gathered");
            return sin(matmul(h, whole));
          },
          options);
      for (int i = 0; i < 4; ++i) x = block(w[i], x);
      return lax::pmean(mean(x), "data");
    };
    const auto f = shard_map([model](Array w, Array x) { return grad(model)(w, x); }, paper,
                             {P(none, "data").local(), P("data")}, P(none, "data").local());
    return jit(f)
        .lower(Type{float32, {4, 16, 1024}}, Type{float32, {64, 1024}})
        .compile()
        .cost_analysis()
        .bytes_communicated;
  };
  const double gather = 1024.0 * 1024 * 4 / 64 * 63, few = 64;
  const double kept = bytes({.policy = checkpoint_policies::save_only_these_names("gathered")});
  const double again = bytes({});
  CHECK(kept == doctest::Approx(8 * gather).epsilon(few / gather));  // 4 gathers, 4 scatters
  // 4 of the backward pass and 4 scatters; the last of the forward pass is for a value that nobody
  // asks for
  CHECK(again == doctest::Approx(11 * gather).epsilon(few / gather));
}
