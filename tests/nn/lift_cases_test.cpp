// Lifted transformations against the real Flax: names, numbers of keys, layouts, results.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
namespace init = reprise::nn::initializers;
using flax::check_gradients;
using flax::check_model;
using flax::wave;
using rp::Array;
using rp::Dict;

namespace {

struct MLP : nn::Module<MLP> {
  std::int64_t features;
  explicit MLP(std::int64_t features) : features(features) {}
  Array call(Array x) {
    x = nn::Dense(features)(x);
    x = nn::relu(x);
    return nn::Dense(features)(x);
  }
};

struct RematChildren : nn::Module<RematChildren> {
  Array call(Array x) {
    x = nn::remat<MLP>()(4)(x);
    x = MLP(4)(x);
    x = nn::checkpoint<MLP>()(4)(x);
    return nn::remat(nn::remat<MLP>())(4)(x);
  }
};

struct BlockOptions {
  double drop = 0.0;
  bool norm = false, bias = true;
};
struct Blk : nn::Module<Blk> {
  BlockOptions o;
  explicit Blk(BlockOptions o = {}) : o(o) {}
  std::pair<Array, Array> call(Array c, std::optional<Array> x) {
    Array h = nn::Dense(c.shape(-1), {.use_bias = o.bias})(c);
    if (x) h = h + *x;
    if (o.norm) h = nn::BatchNorm({.use_running_average = false, .momentum = 0.9})(h);
    if (o.drop > 0) h = nn::Dropout(o.drop, {.deterministic = false})(h);
    c = c + rp::tanh(h);
    return {c, rp::sum(c, -1)};
  }
};
const std::optional<Array> none = std::nullopt;
using Split = nn::SplitRngs;
const Split split_params = {{"params", true}};

struct Cnt : nn::Module<Cnt> {
  std::pair<Array, rp::None> call(Array c) {
    nn::Variable n = variable("counter", "n", [] { return rp::zeros({}); });
    n.set_value(n.value() + 1);
    return {c + n.value(), rp::none};
  }
};
struct Counting : nn::Module<Counting> {
  Array call(Array x) {
    return nn::scan<Cnt>({.variable_carry = "counter", .length = 4})()(x).first;
  }
};

struct InnerScan : nn::Module<InnerScan> {
  std::pair<Array, Array> call(Array c, std::optional<Array> x) {
    const auto Scanned =
        nn::scan<Blk>({.variable_axes = {{"params", 0}}, .split_rngs = split_params, .length = 2});
    return Scanned(BlockOptions{.bias = false})(c, x);
  }
};

struct RematScans : nn::Module<RematScans> {
  Array call(Array x) {
    x = nn::remat_scan<MLP>({.lengths = {2, 2}})(4)(x);
    return nn::remat_scan<nn::Dense>({.lengths = {100}})(4,
                                                         nn::DenseFields{.name = "dense_stack"})(x);
  }
};

struct VmapChildren : nn::Module<VmapChildren> {
  Array call(Array x) {
    const nn::VariableAxes axes = {{"params", 0}};
    x = nn::vmap<MLP>({.variable_axes = axes, .split_rngs = split_params})(4)(x);
    const auto Copies = nn::vmap(nn::remat<MLP>(), {.variable_axes = axes,
                                                    .split_rngs = split_params,
                                                    .in_axes = {std::nullopt},
                                                    .out_axes = {-1},
                                                    .axis_size = 3});
    return Copies(4)(x);
  }
};

struct TwoDrop : nn::Module<TwoDrop> {
  std::pair<Array, Array> call(Array x) {
    nn::Dropout d(0.5, {.deterministic = false});
    const Array a = d(x);
    const Array b = d(x);
    return {a, b};
  }
};

struct JC : nn::Module<JC> {
  Array call(Array x) {
    const Array w = param("w", init::normal(1.0), {4});
    return nn::Dense(3)(x * w);
  }
};
struct JitChild : nn::Module<JitChild> {
  Array call(Array x) { return nn::jit(nn::remat<JC>())()(x); }
};

struct WithFunction : nn::Module<WithFunction> {
  Array call(Array x) {
    x = nn::Dense(4)(x);
    const auto body = [](WithFunction&, Array h) {
      h = nn::Dense(4)(h);
      h = nn::relu(h);
      return nn::Dense(4)(h);
    };
    x = nn::remat(body)(*this, x);
    return nn::Dense(2)(x);
  }
};

}  // namespace

TEST_CASE("children of lifted classes have their names and numbers") {
  check_model("remat_children", RematChildren(), {}, wave({4}));
  check_gradients("remat_children", RematChildren(), {}, wave({4}));
}

TEST_CASE("a lifted function makes children as the module itself would") {
  check_model("remat_function", WithFunction(), {}, wave({4}));
  check_gradients("remat_function", WithFunction(), {}, wave({4}));
}

TEST_CASE("scan stacks parameters along any axis") {
  const Array x = wave({2, 4});
  const nn::LiftScanOptions first = {
      .variable_axes = {{"params", 0}}, .split_rngs = split_params, .length = 3};
  check_model("scan_axis0", nn::scan(nn::remat<Blk>(), first)(), {}, x, none);
  nn::LiftScanOptions budget = first;
  budget.checkpoints = 2;
  check_model("scan_axis0", nn::scan<Blk>(budget)(), {}, x, none);
  const Dict variables = flax::dict_of(flax::more("scan_axis0").at("variables"));
  const auto gradient = [&](const auto& model) {
    const auto loss = [&](Dict v) {
      return rp::sum(rp::square(rp::tree_leaves(model.apply(v, nn::ApplyOptions{}, x, none))[0]));
    };
    return rp::grad(loss)(variables).dict("params");
  };
  flax::check_close(gradient(nn::scan<Blk>(budget)()), gradient(nn::scan<Blk>(first)()));
  check_model(
      "scan_axis1",
      nn::scan<Blk>({.variable_axes = {{"params", 1}}, .split_rngs = split_params, .length = 3})(),
      {}, x, none);
  check_model(
      "scan_axis_last_nobias",
      nn::scan<Blk>({.variable_axes = {{"params", -1}}, .split_rngs = split_params, .length = 3})(
          BlockOptions{.bias = false}),
      {.seed = 7}, x, none);
}

TEST_CASE("scan cuts arguments along any axis, or hands them whole to all steps") {
  const Array x = wave({2, 4});
  const nn::VariableAxes axes = {{"params", 0}};
  check_model("scan_xs", nn::scan<Blk>({.variable_axes = axes, .split_rngs = split_params})(), {},
              x, wave({3, 2, 4}));
  check_model("scan_xs_axis1_out1_reverse",
              nn::scan<Blk>({.variable_axes = axes,
                             .split_rngs = split_params,
                             .in_axes = {1},
                             .out_axes = {1},
                             .reverse = true})(),
              {}, x, wave({2, 3, 4}));
  check_model("scan_xs_broadcast",
              nn::scan<Blk>({.variable_axes = axes,
                             .split_rngs = split_params,
                             .in_axes = {nn::broadcast},
                             .length = 2})(),
              {}, x, wave({2, 4}));
}

TEST_CASE("scan stacks statistics, splits or shares keys, broadcasts and carries variables") {
  const nn::VariableAxes both = {{"params", 0}, {"batch_stats", 0}};
  check_model(
      "scan_batch_stats",
      nn::scan(nn::remat<Blk>(), {.variable_axes = both, .split_rngs = split_params, .length = 3})(
          BlockOptions{.norm = true}),
      {.changes = "batch_stats"}, wave({4, 3}), none);
  const flax::CaseOptions dropout = {.rngs = {{"dropout", rp::random::PRNGKey(11)}}};
  const nn::VariableAxes axes = {{"params", 0}};
  const Split split_both = {{"params", true}, {"dropout", true}},
              shared = {{"params", true}, {"dropout", false}};
  check_model(
      "scan_dropout",
      nn::scan(nn::remat<Blk>(), {.variable_axes = axes, .split_rngs = split_both, .length = 3})(
          BlockOptions{.drop = 0.5}),
      dropout, wave({2, 8}), none);
  check_model("scan_dropout_shared",
              nn::scan<Blk>({.variable_axes = axes, .split_rngs = shared, .length = 3})(
                  BlockOptions{.drop = 0.5}),
              dropout, wave({2, 8}), none);
  check_model(
      "scan_broadcast_params",
      nn::scan<Blk>(
          {.variable_broadcast = "params", .split_rngs = {{"params", false}}, .length = 3})(),
      {}, wave({2, 4}), none);
}

TEST_CASE("scan hands a carried variable from step to step") {
  const flax::Json& c = flax::more("scan_carry");
  const auto [out, changed] =
      Counting().apply(flax::dict_of(c.at("variables")), nn::mutable_("counter"), wave({2}));
  flax::check_result(out, c.at("out"));
  flax::check_close(changed, flax::dict_of(c.at("changed")));
}

TEST_CASE("scans nest, and remat_scan nests them with recomputation") {
  check_model("scan_nested",
              nn::scan<InnerScan>(
                  {.variable_axes = {{"params", 0}}, .split_rngs = split_params, .length = 3})(),
              {}, wave({2, 4}), none);
  check_model("remat_scan_222", nn::remat_scan<nn::Dense>({.lengths = {2, 2, 2}})(3), {},
              wave({3}));
  const nn::DenseFields no_bias = {.use_bias = false};
  check_model("remat_scan_3_nobias", nn::remat_scan<nn::Dense>({.lengths = {3}})(3, no_bias), {},
              wave({3}));
  const auto two_loops = nn::remat_scan<nn::Dense>({.lengths = {2, 3}})(3, no_bias);
  check_model("remat_scan_23_nobias", two_loops, {.seed = 5}, wave({3}));
  check_gradients("remat_scan_23_nobias", two_loops, {}, wave({3}));
  check_model("remat_scan_children", RematScans(), {}, wave({4}) * 0.1);
}

TEST_CASE("vmap maps or shares parameters and keys") {
  const nn::VariableAxes axes = {{"params", 0}};
  check_model("vmap_split",
              nn::vmap<nn::Dense>({.variable_axes = axes, .split_rngs = split_params})(3), {},
              wave({2, 4}));
  check_model("vmap_axis1",
              nn::vmap<nn::Dense>({.variable_axes = {{"params", 1}},
                                   .split_rngs = split_params,
                                   .in_axes = {1},
                                   .out_axes = {1}})(3),
              {}, wave({4, 2}));
  check_model("vmap_shared",
              nn::vmap<nn::Dense>({.variable_axes = {{"params", std::nullopt}},
                                   .split_rngs = {{"params", false}}})(3),
              {}, wave({2, 4}));
  check_model("vmap_children", VmapChildren(), {}, wave({2, 4}));
  check_model("vmap_dropout", nn::vmap<TwoDrop>({.split_rngs = {{"dropout", true}}})(),
              {.rngs = {{"dropout", rp::random::PRNGKey(1)}}}, wave({2, 8}));
}

TEST_CASE("jit starts the streams anew, at the top and in a child") {
  check_model("jit_top", nn::jit<JC>()(), {}, wave({4}));
  check_model("jit_child", JitChild(), {}, wave({4}));
  check_gradients("jit_child", JitChild(), {}, wave({4}));
}
