// What the guide promises about work and memory, counted in the programs.
#include "error_text.h"
#include "program/primitive.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

namespace rp = reprise;
using rp::Array;
namespace P = rp::checkpoint_policies;

namespace {

// ---------------------------------------------------------------------------------------- counters

struct Work {
  std::int64_t equations =
      0;                   // of one primitive, those in called programs included, times their steps
  std::int64_t flops = 0;  // of dot_general: two per multiplication and addition
};

std::int64_t dot_flops(const rp::Program& p, const rp::Equation& e) {
  const rp::Type lhs = p.type(e.in[0]);
  std::int64_t contracted = 1;
  for (std::int64_t d : e.params.get<rp::DotDims>("dimension_numbers").lhs_contracting) {
    contracted *= lhs.shape[static_cast<std::size_t>(d)];
  }
  return 2 * p.type(e.out[0]).size() * contracted;
}

Work work_of(const rp::Program& p, std::string_view primitive) {
  Work work;
  for (const rp::Equation& e : p.eqns) {
    if (e.prim->name == primitive) ++work.equations;
    if (e.prim->name == primitive && primitive == "dot_general") work.flops += dot_flops(p, e);
    const auto* length = e.params.find("length");
    const std::int64_t steps = length == nullptr ? 1 : std::get<std::int64_t>(*length);
    rp::for_each_program(e.params, [&](const rp::ProgramPtr& inner) {
      const Work inside = work_of(*inner, primitive);
      work.equations += steps * inside.equations;
      work.flops += steps * inside.flops;
    });
  }
  return work;
}
// Of the gradient with respect to all arguments: forward and backward pass.
template <std::size_t... I, class F, class... A>
Work grad_work(const char* primitive, const F& f, const A&... args) {
  return work_of(*rp::make_jaxpr(rp::grad<I...>(f))(args...).program(), primitive);
}

using Lines = std::vector<rp::SavedResidual>;
std::size_t count_origin(const Lines& lines, const std::string& start) {
  std::size_t n = 0;
  for (const rp::SavedResidual& r : lines) n += r.origin.rfind(start, 0) == 0 ? 1 : 0;
  return n;
}

// ------------------------------------------------------------------------------------------ models

Array relu_layer(Array W, Array x) {
  const Array y = rp::dot(x, W);
  return rp::maximum(y, 0.0);
}
template <class Layer>
auto four_layers(Layer layer) {
  return [layer](Array W, Array x) {
    for (int i = 0; i < 4; ++i) x = layer(W, x);
    return x;
  };
}
template <class F>
auto total(F f) {
  return [f](Array W, Array x) { return rp::sum(f(W, x)); };
}

struct Dense {
  Array kernel, bias;
};
using Layers = std::array<Dense, 3>;
Array dense(const Dense& d, Array x) {
  const Array y = rp::dot(x, d.kernel);
  return y + d.bias;
}
Array mlp3(Layers layers, Array x) {
  x = dense(layers[0], x);
  x = rp::nn::relu(x);
  x = dense(layers[1], x);
  x = rp::nn::relu(x);
  x = dense(layers[2], x);
  return rp::sum(x);
}
Layers mlp3_layers() {
  Layers layers;
  for (Dense& d : layers) d = {rp::ones({4, 4}) * 0.5, rp::ones({4})};
  return layers;
}

using Function = std::function<Array(Array)>;
Function recursive(const std::vector<Function>& funs) {
  if (funs.size() == 1) return funs[0];
  if (funs.size() == 2) return [f1 = funs[0], f2 = funs[1]](Array x) { return f1(f2(x)); };
  const auto middle = funs.begin() + static_cast<std::ptrdiff_t>(funs.size() / 2);
  const Function f1 = recursive({funs.begin(), middle});
  const Function f2 = recursive({middle, funs.end()});
  return [f1, c2 = rp::checkpoint(f2)](Array x) { return f1(c2(x)); };
}
Function recursive_sines(std::size_t n) {
  return recursive(std::vector<Function>(n, [](Array x) { return rp::sin(x); }));
}
Function chain_of_sines(std::size_t n) {
  return [n](Array x) {
    for (std::size_t i = 0; i < n; ++i) x = rp::sin(x);
    return x;
  };
}

}  // namespace

// -------------------------------------------------------------------------------- work of products

TEST_CASE("checkpoint per block costs a third more work in products") {
  const Array W = rp::ones({16, 16}), x = rp::ones({8, 16});
  auto block = [](Array w, Array v) {
    v = rp::sin(rp::matmul(v, w));
    return rp::sin(rp::matmul(v, w));
  };
  const auto plain = grad_work<0, 1>("dot_general", total(four_layers(block)), W, x);
  const auto each = grad_work<0, 1>("dot_general", total(four_layers(rp::checkpoint(block))), W, x);
  // Eight products forward, for each two backward; checkpointed each forward product runs once
  // more.
  const std::int64_t forward = 8 * 2 * 8 * 16 * 16;
  CHECK(plain.flops == 3 * forward);
  CHECK(each.flops == 4 * forward);
  const auto dots = rp::checkpoint(block, {.policy = P::dots_saveable});
  CHECK(grad_work<0, 1>("dot_general", total(four_layers(dots)), W, x).flops == 3 * forward);
}

TEST_CASE("as a scan the checkpointed blocks cost the same as in a C++ loop") {
  const Array Ws = rp::ones({4, 16, 16}), x = rp::ones({8, 16});
  auto scanned = [](auto block) {
    return [block](Array ws, Array v) {
      auto step = [block](Array c, Array w) { return std::pair{block(w, c), rp::none}; };
      return rp::sum(rp::scan(step, v, ws).first);
    };
  };
  auto block = [](Array w, Array v) { return rp::sin(rp::matmul(v, w)); };
  const std::int64_t forward = 4 * 2 * 8 * 16 * 16;
  CHECK(grad_work<0, 1>("dot_general", scanned(block), Ws, x).flops == 3 * forward);
  CHECK(grad_work<0, 1>("dot_general", scanned(rp::checkpoint(block)), Ws, x).flops == 4 * forward);
}

TEST_CASE("wrapping one region twice is free, wrapping regions within regions costs more") {
  const Array W = rp::ones({3, 3}), x = rp::ones({3});
  auto dots = [&](auto f) { return grad_work<0, 1>("dot_general", total(f), W, x).equations; };
  const auto plain = four_layers(relu_layer);
  const auto per_layer = four_layers(rp::checkpoint(relu_layer));
  CHECK(dots(plain) == 12);
  CHECK(dots(rp::checkpoint(plain)) == 16);
  CHECK(dots(per_layer) == 16);
  CHECK(dots(rp::checkpoint(per_layer)) == 19);
  CHECK(dots(rp::checkpoint(rp::checkpoint(plain))) == 16);
  CHECK(dots(four_layers(rp::checkpoint(rp::checkpoint(relu_layer)))) == 16);
  CHECK(dots(rp::checkpoint(rp::checkpoint(per_layer))) == 19);
}

TEST_CASE("what the policies save and repeat of three dense layers") {
  struct Row {
    const char* variant;
    std::function<Array(Layers, Array)> f;
    std::int64_t dots;
    std::size_t arguments, products, others;
  };
  auto with = [](const rp::Policy& p) { return rp::checkpoint(mlp3, {.policy = p}); };
  const std::vector<Row> rows = {
      {"no checkpoint", mlp3, 9, 4, 0, 6},
      {"checkpoint", rp::checkpoint(mlp3), 11, 6, 0, 0},
      {"nothing", with(P::nothing_saveable), 11, 6, 0, 0},
      {"names that are not there", with(P::save_only_these_names("mlp3")), 11, 6, 0, 0},
      {"may be merged", rp::checkpoint(mlp3, {.prevent_cse = false}), 11, 6, 0, 0},
      {"dots", with(P::dots_saveable), 9, 6, 2, 0},
      {"dots without batch", with(P::dots_with_no_batch_dims_saveable), 9, 6, 2, 0},
      {"everything", with(P::everything_saveable), 9, 4, 0, 6},
      {"anything but", with(P::save_anything_except_these_names("mlp3")), 9, 4, 0, 6},
      {"twice", rp::checkpoint(rp::checkpoint(mlp3)), 11, 6, 0, 0}};
  const Layers layers = mlp3_layers();
  const Array x = rp::ones({4});
  for (const Row& row : rows) {
    INFO(row.variant);
    CHECK(grad_work<0, 1>("dot_general", row.f, layers, x).equations == row.dots);
    const Lines lines = rp::saved_residuals(row.f, layers, x);
    const std::size_t arguments = count_origin(lines, "from the argument");
    const std::size_t products = count_origin(lines, "output of dot_general");
    CHECK(arguments == row.arguments);
    CHECK(products == row.products);
    CHECK(lines.size() - arguments - products == row.others);
  }
}

TEST_CASE("dots_saveable keeps convolutions, the policy without batch dimensions does not") {
  auto f = [](Array k1, Array k2, Array x) {
    x = rp::lax::conv_general_dilated(x, k1, {});
    x = rp::nn::relu(x);
    x = rp::lax::conv_general_dilated(x, k2, {});
    return rp::sum(x);
  };
  const Array k = rp::ones({2, 2, 3, 3}), x = rp::ones({1, 2, 8, 8});
  auto convolutions = [&](auto g) {
    return grad_work<0, 1>("conv_general_dilated", g, k, k * 2.0, x).equations;
  };
  CHECK(convolutions(f) == 5);
  CHECK(convolutions(rp::checkpoint(f)) == 6);
  CHECK(convolutions(rp::checkpoint(f, {.policy = P::dots_saveable})) == 5);
  CHECK(convolutions(rp::checkpoint(f, {.policy = P::dots_with_no_batch_dims_saveable})) == 6);
}

// --------------------------------------------------------------------------------------- recursion

TEST_CASE(
    "recursive checkpointing keeps log2 n + 1 values and evaluates each sine about log2 n / 2 "
    "times") {
  for (std::int64_t n : {8, 16, 64, 1024}) {
    INFO("n = " << n);
    const auto log2 = static_cast<std::int64_t>(std::lround(std::log2(n)));
    const Function f = recursive_sines(static_cast<std::size_t>(n));
    CHECK(static_cast<std::int64_t>(rp::saved_residuals(f, 0.3).size()) == log2 + 1);
    const Function chain = chain_of_sines(static_cast<std::size_t>(n));
    CHECK(static_cast<std::int64_t>(rp::saved_residuals(chain, 0.3).size()) == n);
    // V(n) = n/2 for the second half once more + V(n/2) for each half = n (log2 n + 1) / 2, less
    // the last sine of each of the n/2 - 1 recomputations, whose value nobody reads.
    const std::int64_t sines = n * (log2 + 1) / 2 - (n / 2 - 1);
    CHECK(grad_work<0>("sin", f, 0.3).equations == sines);
    CHECK(grad_work<0>("sin", chain, 0.3).equations == n);
    // The coefficients are computed once each, whatever is checkpointed.
    CHECK(grad_work<0>("cos", f, 0.3).equations == n);
    CHECK(grad_work<0>("cos", chain, 0.3).equations == n);
  }
}

TEST_CASE("the memory of a recursively checkpointed gradient grows as the logarithm, measured") {
  const Array x = rp::ones({64, 1024});
  auto arrays = [&](const Function& f) {
    auto loss = [&f](Array v) { return rp::sum(f(v)); };
    rp::reset_peak_live_bytes();
    const std::size_t before = rp::live_bytes();
    const Array g = rp::grad(loss)(x);
    return (rp::peak_live_bytes() - before) / x.nbytes();
  };
  std::vector<std::size_t> recursive_peaks;
  for (std::size_t n : {8, 16, 32, 64}) {
    CHECK(arrays(chain_of_sines(n)) >= n);
    recursive_peaks.push_back(arrays(recursive_sines(n)));
  }
  // Doubling the length adds one array at most.
  for (std::size_t i = 1; i < recursive_peaks.size(); ++i)
    CHECK(recursive_peaks[i] <= recursive_peaks[i - 1] + 1);
  CHECK(recursive_peaks.back() <= 12);
}

// ------------------------------------------------------------------------------------------- names

TEST_CASE(
    "save_anything_except_these_names leaves the named value out in bytes, not only in name") {
  auto f = [](Array x) {
    Array h = rp::sin(x);
    h = rp::checkpoint_name(h, "h");
    const Array e = rp::exp(h);
    return rp::sum(e * h);
  };
  const Array x = rp::ones({256, 4});
  auto report = [&](const rp::Policy& p) {
    return rp::residual_report(rp::checkpoint(f, {.policy = p}), RP_ARGS(x));
  };
  const rp::ResidualReport all = report(P::everything_saveable);
  const rp::ResidualReport but = report(P::save_anything_except_these_names("h"));
  CHECK(all.computed_bytes() == 3 * x.nbytes());  // cos x, h, exp h
  CHECK(but.computed_bytes() == 2 * x.nbytes());
  CHECK(but.bytes() == 3 * x.nbytes());  // h is made again from the argument
  for (const rp::ResidualDetail& r : but.residuals) {
    CHECK(r.name.empty());
    CHECK(r.origin.rfind("output of sin", 0) != 0);  // nor under another label
  }
  CHECK(report(P::save_anything_but_these_names("h")).bytes() == but.bytes());
}

// ------------------------------------------------------------------------------------------ misuse

static_assert(!std::is_convertible_v<int, rp::Policy>, "a number is not a policy");
static_assert(!std::is_convertible_v<bool (*)(int), rp::Policy>, "nor is any function");
static_assert(std::is_convertible_v<bool (*)(const rp::EquationInfo&), rp::Policy>);

TEST_CASE(
    "a number needed inside checkpoint names the argument, and making it static is the way out") {
  const Array x = rp::ones({3});
  auto f = [](Array v, Array is_training) { return is_training.item<bool>() ? rp::sin(v) : v; };
  const std::string text = error_of([&] { return rp::checkpoint(f)(x, true); });
  CHECK(text.find("item: a number is needed while tracing a function for checkpoint, got bool[]; "
                  "it depends on the value of the argument args[1]") == 0);
  CHECK(text.find(
            "hint: make the argument static (an int, bool or enum parameter, or static_argnums)") !=
        std::string::npos);
  const auto g = rp::checkpoint(rp::static_argnums<1>(f));
  CHECK(rp::make_jaxpr([&](Array v) { return g(v, true); })(x).str().find("= sin ") !=
        std::string::npos);
  CHECK(rp::make_jaxpr([&](Array v) { return g(v, false); })(x).str().find("= sin ") ==
        std::string::npos);
}

TEST_CASE("static_argnums hands numbers to auto parameters as they are, through every transform") {
  auto f = [](Array v, auto n) {
    static_assert(std::is_same_v<decltype(n), int>);
    for (int i = 0; i < n; ++i) v = rp::sin(v);
    return rp::sum(v);
  };
  const auto c = rp::checkpoint(rp::static_argnums<-1>(f));
  const Array x = rp::ones({3});
  const double expected = std::cos(std::sin(1.0)) * std::cos(1.0);
  CHECK(rp::grad(c)(x, 2).to_vector<float>()[0] == doctest::Approx(expected));
  CHECK(rp::jit(rp::grad(c))(x, 2).to_vector<float>()[0] == doctest::Approx(expected));
  CHECK(std::get<0>(rp::vjp(c, x, 2).second(1.0)).to_vector<float>()[0] ==
        doctest::Approx(expected));
  CHECK(rp::saved_residuals(c, RP_ARGS(x), 2).size() == 1);
  CHECK(rp::vmap(c)(rp::ones({4, 3}), 1).shape() == rp::Shape{4});
}

TEST_CASE("jit traces once per value of a static argument") {
  int traces = 0;
  auto f = [&traces](Array v, Array n) {
    ++traces;
    for (int i = 0; i < n.item<int>(); ++i) v = v + 1.0;
    return v;
  };
  const auto j = rp::jit(rp::static_argnums<1>(f));
  CHECK(j(0.0, 2).item<int>() == 2);
  CHECK(j(0.0, 2).item<int>() == 2);
  CHECK(traces == 1);
  CHECK(j(0.0, 3).item<int>() == 3);
  CHECK(traces == 2);
}

TEST_CASE("prevent_cse takes one flag per argument, no more and no fewer") {
  auto f = [](Array v, int n, Array w) { return v * static_cast<double>(n) + w; };
  auto call = [&](std::vector<bool> flags) {
    return error_of(
        [&] { return rp::checkpoint(f, {.prevent_cse = std::move(flags)})(1.0, 2, 3.0); });
  };
  CHECK(call({true, false, true}) == "no error");
  CHECK(call({true}).find("checkpoint: prevent_cse must have one flag per argument, got 1 for 3") ==
        0);
  CHECK(call({true, true, true, true})
            .find("checkpoint: prevent_cse must have one flag per argument, got 4 for 3") == 0);
}
