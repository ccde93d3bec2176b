// JAX's RematTest, merging of equal equations and caching: the params that forbid and allow it, how
// often a function is traced.
#include "program/print.h"
#include "remat/upstream.h"
#include "transform/cse.h"

using namespace upstream;

namespace {

Array first(Array x, const rp::CheckpointOptions& options) {
  auto g = [](Array v) { return std::pair{rp::sin(rp::sin(v)), Array(3.0)}; };
  return rp::checkpoint(g, options)(x).first;
}
Array product(Array x, Array y) { return rp::sin(x) * rp::cos(y); }

// 2 x in jit, counting how often it is traced.
auto doubled(int* traces) {
  return rp::jit([traces](Array x) {
    ++*traces;
    return 2 * x;
  });
}

}  // namespace

TEST_CASE("no_cse_widget_on_primals: only the recomputation is kept apart") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = [o](Array x) { return first(x, o); };
    CHECK(contains(text(f, 2.0), "differentiated=False"));
    const rp::Jaxpr gradient = rp::make_jaxpr(rp::grad(f))(2.0);
    CHECK(contains(gradient.str(), "differentiated=True"));
    CHECK(contains(gradient.str(), "prevent_cse=True"));
    // Two sins forward and one again: the pass that merges equal equations leaves all three.
    CHECK(count(rp::to_text(rp::cse(*gradient.program()), {}), " sin ") == 3);
  }
}

TEST_CASE("no_cse_widget_with_prevent_cse_false: the param allows merging, before and after grad") {
  auto f = [](Array x) { return first(x, {.prevent_cse = false}); };
  CHECK(contains(text(f, 2.0), "prevent_cse=False"));
  CHECK(contains(text(rp::grad(f), 2.0), "prevent_cse=False"));
  CHECK(!contains(text(rp::grad(f), 2.0), "prevent_cse=True"));
}

TEST_CASE(
    "remat_partial_cse_prevention: flags per operand, none for constants, set for cotangents") {
  auto with_flags = [](std::vector<bool> flags) {
    return rp::checkpoint(product, {.prevent_cse = std::move(flags)});
  };
  auto gradient_text = [](auto f) { return text(rp::grad<0, 1>(f), 1.0, 2.0); };
  CHECK(contains(gradient_text(with_flags({false, true})), "prevent_cse=(False, True, True)"));
  CHECK(contains(gradient_text(with_flags({false, false})), "prevent_cse=(False, False, True)"));
  const Array constant = rp::ones({3});
  auto body = [constant](Array x, Array y) { return rp::sum(product(x, y) * constant); };
  CHECK(
      contains(gradient_text(rp::checkpoint(body, {.prevent_cse = std::vector<bool>{false, true}})),
               "prevent_cse=(False, False, True, True)"));
  // The flag of a tree is that of each of its arrays.
  auto tree = [](Array x, std::pair<Array, Array> y) { return product(x, y.first) * y.second; };
  auto of_tree = rp::checkpoint(tree, {.prevent_cse = std::vector<bool>{false, true}});
  CHECK(contains(text(rp::grad<0, 1>(of_tree), 1.0, std::pair<Array, Array>{2.0, 3.0}),
                 "prevent_cse=(False, True, True, True)"));
}

TEST_CASE("linearize_caching and vjp_caching: running the linear function traces nothing") {
  int traces = 0;
  auto f = rp::checkpoint(doubled(&traces));
  const auto [y, linear] = rp::linearize(f, 1.0);
  const auto [z, backward] = rp::vjp(f, 1.0);
  CHECK(traces == 1);
  for (int i = 0; i < 20; ++i) {
    CHECK(linear(1.0).item<float>() == 2);
    CHECK(std::get<0>(backward(1.0)).item<float>() == 2);
  }
  CHECK(traces == 1);
}

TEST_CASE("fwd_caching: a jitted function inside checkpoint is traced once for all calls") {
  int traces = 0;
  auto f = rp::checkpoint(doubled(&traces));
  for (int i = 0; i < 20; ++i) CHECK(rp::vjp(f, 1.0).first.item<float>() == 2);
  CHECK(traces == 1);
}

TEST_CASE("vjp_caching_static_argnums and fwd_caching_static_argnums: once per static value") {
  int traces = 0;
  auto jitted = rp::jit([&traces](Array x, bool twice) {
    ++traces;
    return twice ? 2 * x : x;
  });
  auto f = rp::checkpoint([jitted](Array x, bool twice) { return jitted(x, twice); });
  const auto backward = rp::vjp([f](Array x) { return f(x, true); }, 1.0).second;
  for (int i = 0; i < 20; ++i) {
    CHECK(std::get<0>(backward(1.0)).item<float>() == 2);
    CHECK(f(1.0, true).item<float>() == 2);
  }
  CHECK(traces == 1);
  CHECK(f(1.0, false).item<float>() == 1);
  CHECK(traces == 2);
}
