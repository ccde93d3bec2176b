// checkpoint: the same values, the promised residuals, less memory, clear errors.
#include "error_text.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <sstream>

namespace rp = reprise;
using rp::Array;
namespace P = rp::checkpoint_policies;

namespace {

using Function = std::function<Array(Array)>;

Function recursive(const std::vector<Function>& funs) {
  if (funs.size() == 1) return funs[0];
  if (funs.size() == 2) return [f1 = funs[0], f2 = funs[1]](Array x) { return f1(f2(x)); };
  const auto middle = funs.begin() + static_cast<std::ptrdiff_t>(funs.size() / 2);
  const Function f1 = recursive({funs.begin(), middle});
  const Function f2 = recursive({middle, funs.end()});
  return [f1, c2 = rp::checkpoint(f2)](Array x) { return f1(c2(x)); };
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Array block(Array W, Array x) {
  Array y = rp::matmul(x, W);
  y = rp::tanh(y);
  y = rp::matmul(y, W);
  y = rp::checkpoint_name(y, "out");
  return rp::sin(y);
}

// The largest difference, relative to the largest magnitude.
double distance(Array a, Array b) {
  return rp::max(rp::abs(a - b)).item<double>() / rp::max(rp::abs(b)).item<double>();
}

}  // namespace

TEST_CASE("every policy gives the same value and gradient") {
  const Array W = rp::linspace(-1.0, 1.0, 16).reshape({4, 4}).astype(rp::float64);
  const Array x = rp::linspace(0.0, 2.0, 12).reshape({3, 4}).astype(rp::float64);
  auto loss = [](auto f) { return [f](Array w, Array v) { return rp::sum(f(w, f(w, v))); }; };
  const auto [value, grads] = rp::value_and_grad<0, 1>(loss(block))(W, x);
  const rp::Policy only_tanh = [](const rp::EquationInfo& e) { return e.primitive == "tanh"; };
  for (const rp::Policy& p :
       {rp::Policy(), P::everything_saveable, P::nothing_saveable, P::dots_saveable,
        P::dots_with_no_batch_dims_saveable, P::save_only_these_names("out"),
        P::save_any_names_but_these("out"), P::save_anything_except_these_names("out"),
        P::dots_saveable | P::save_only_these_names("out"),
        P::everything_saveable & P::bytes_at_most(10), !P::dots_saveable, only_tanh,
        P::offload_dot_with_no_batch_dims("device", "pinned_host")}) {
    INFO("policy " << p.str());
    const auto [v, g] = rp::value_and_grad<0, 1>(loss(rp::checkpoint(block, {.policy = p})))(W, x);
    CHECK(v.item<double>() == value.item<double>());
    // Cotangents of W arrive in another order when a block is transposed as a whole.
    CHECK(distance(std::get<0>(g), std::get<0>(grads)) < 1e-12);
    CHECK(distance(std::get<1>(g), std::get<1>(grads)) < 1e-12);
  }
}

TEST_CASE("recursive checkpointing keeps a number of values that grows as the logarithm") {
  std::vector<std::size_t> counts;
  for (std::size_t n : {8, 16, 64, 1024}) {
    const Function f = recursive(std::vector<Function>(n, [](Array x) { return rp::sin(x); }));
    counts.push_back(rp::saved_residuals(f, 0.3).size());
    CHECK(rp::grad(f)(0.3).item<float>() == doctest::Approx(rp::grad([n](Array x) {
                                                              for (std::size_t i = 0; i < n; ++i)
                                                                x = rp::sin(x);
                                                              return x;
                                                            })(0.3)
                                                                .item<float>()));
  }
  CHECK(counts == std::vector<std::size_t>{4, 5, 7, 11});
}

TEST_CASE("where checkpoint is placed decides what it saves") {
  const Array W = rp::ones({64, 64}), x = rp::ones({64, 64});
  auto stage = [](Array w, Array v) {
    for (int i = 0; i < 4; ++i) v = rp::sin(rp::matmul(v, w));
    return v;
  };
  auto bytes = [&](auto f) {
    std::size_t total = 0;
    for (const rp::SavedResidual& r : rp::saved_residuals(f, W, x)) total += r.bytes;
    return total;
  };
  const std::size_t plain = bytes([&](Array w, Array v) { return stage(w, stage(w, v)); });
  const std::size_t first =
      bytes([&](Array w, Array v) { return stage(w, rp::checkpoint(stage)(w, v)); });
  CHECK(first < plain * 6 / 10);
  // Around everything nothing is computed in advance: only the arguments cross.
  const std::size_t whole =
      bytes(rp::checkpoint([&](Array w, Array v) { return stage(w, stage(w, v)); }));
  CHECK(whole == W.nbytes() + x.nbytes());
}

TEST_CASE("per-layer checkpoint of 32 layers needs at most a quarter of the memory, eagerly") {
  const Array x = rp::ones({64, 1024});
  auto layer = [](Array v) {
    for (int i = 0; i < 8; ++i) v = rp::sin(v);
    return v;
  };
  auto peak = [&](auto f) {
    auto loss = [f](Array v) {
      for (int i = 0; i < 32; ++i) v = f(v);
      return rp::sum(v);
    };
    rp::reset_peak_live_bytes();
    const std::size_t before = rp::live_bytes();
    const Array g = rp::grad(loss)(x);
    return rp::peak_live_bytes() - before;
  };
  CHECK(peak(rp::checkpoint(layer)) * 4 <= peak(layer));
}

TEST_CASE("the recomputation evaluates what the evaluation counter of nested checkpoints says") {
  auto f = rp::checkpoint([](Array x) {
    x = rp::checkpoint([](Array y) { return rp::sin(rp::sin(y)); })(x);
    return rp::sin(x);
  });
  const std::string text = rp::make_jaxpr(rp::grad(f))(1.0).str();
  // 3 forward, 2 to recompute the outer one, 1 more for the inner
  CHECK(count(text, "= sin ") == 6);
}

TEST_CASE("checkpointing the same region twice costs nothing more") {
  auto once = rp::checkpoint([](Array x) { return rp::sin(rp::sin(x)); });
  auto twice = rp::checkpoint(once);
  CHECK(rp::saved_residuals(twice, 1.0).size() == rp::saved_residuals(once, 1.0).size());
  CHECK(rp::grad(twice)(1.0).item<float>() == rp::grad(once)(1.0).item<float>());
}

TEST_CASE("second derivatives go through checkpoint") {
  auto f = [](Array x) { return rp::sin(rp::exp(x)); };
  auto c = rp::checkpoint(f);
  CHECK(rp::grad(rp::grad(c))(0.3).item<float>() ==
        doctest::Approx(rp::grad(rp::grad(f))(0.3).item<float>()));
  CHECK(rp::grad(rp::grad(rp::grad(c)))(0.3).item<float>() ==
        doctest::Approx(rp::grad(rp::grad(rp::grad(f)))(0.3).item<float>()));
  CHECK(rp::hessian(c)(0.3).item<float>() == doctest::Approx(rp::hessian(f)(0.3).item<float>()));
}

TEST_CASE("while inside checkpoint can be linearized, and its reverse is an error") {
  auto f = rp::checkpoint([](Array x) {
    return rp::while_loop([](Array v) { return v < 10.0; }, [](Array v) { return v * 2.0; }, x);
  });
  auto [y, linear] = rp::linearize(f, Array(3.0));
  CHECK(y.item<float>() == 12);
  CHECK(linear(Array(1.0)).item<float>() == 4);
  CHECK(error_of([&] { return rp::grad(f)(3.0); }).find("while_loop: reverse-mode") == 0);
}

TEST_CASE("offloaded residuals are on the host") {
  auto f = rp::checkpoint(
      block,
      {.policy = P::save_and_offload_only_these_names({.names_which_can_be_saved = {},
                                                       .names_which_can_be_offloaded = {"out"},
                                                       .offload_src = "device",
                                                       .offload_dst = "pinned_host"})});
  const auto list = rp::saved_residuals(f, rp::ones({4, 4}), rp::ones({3, 4}));
  std::ostringstream last;
  last << list.back();
  CHECK(last.str() == "f32<host>[3,4] output of device_put from ");
}

TEST_CASE("misuse of checkpoint is a clear error") {
  const Array x = rp::ones({3});
  auto f = [](Array v) { return rp::sin(v); };
  CHECK(error_of([&] {
          return rp::checkpoint(f, {.prevent_cse = std::vector<bool>{}})(x);
        }).find("checkpoint: prevent_cse must have one flag per argument, got 0 for 1") == 0);
  auto branches = rp::checkpoint([](Array v) { return v.item<float>() > 0 ? v : -v; });
  const std::string text = error_of([&] { return branches(1.0); });
  CHECK(text.find("item: a number is needed while tracing a function for checkpoint") == 0);
  CHECK(text.find("it depends on the value of the argument args[0]") != std::string::npos);
  auto strict = rp::checkpoint(block, {.policy = P::save_only_these_names("uot"), .strict = true});
  const std::string name = error_of([&] { return strict(rp::ones({4, 4}), rp::ones({3, 4})); });
  CHECK(name.find("checkpoint: the policy names a value that does not exist, got 'uot'") == 0);
  CHECK(name.find("the nearest name in the function is 'out'") != std::string::npos);
  CHECK(error_of([] {
          return P::save_and_offload_only_these_names({.names_which_can_be_saved = {"a"},
                                                       .names_which_can_be_offloaded = {"a"},
                                                       .offload_src = "device",
                                                       .offload_dst = "pinned_host"});
        }).find("a name can be saved or offloaded, not both, got 'a'") != std::string::npos);
}

TEST_CASE("policies print themselves, ours alone and JAX's in programs") {
  std::ostringstream out;
  out << (P::dots_saveable | P::save_only_these_names("h"));
  CHECK(out.str() == "(dots_saveable | save_only_these_names('h'))");
  CHECK(P::save_only_these_names("b", "a").jax_repr() ==
        "SaveOnlyTheseNames(saveable_names=frozenset({'a', 'b'}))");
  CHECK(P::save_any_names_but_these().jax_repr() == "SaveAnyNamesButThese(names=frozenset())");
  CHECK(P::everything_saveable.jax_repr() == "<function everything_saveable at 0xXXXXXXXXXXXX>");
}
