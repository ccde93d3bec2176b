// Keys, binding, tables, filters, and the messages of modules.
#include "nn/golden.h"

#include <atomic>
#include <cstdlib>
#include <thread>

namespace rp = reprise;
namespace nn = reprise::nn;
namespace init = reprise::nn::initializers;
using doctest::Contains;
using flax::wave;
using rp::Array;
using rp::Dict;

namespace {

struct KeyAt : nn::Module<KeyAt> {
  int requests;
  explicit KeyAt(int requests, std::string name = {})
      : Module(std::move(name)), requests(requests) {}
  Array call() {
    Array key;
    for (int i = 0; i < requests; ++i) key = make_rng();
    return key;
  }
};
struct KeyBelow : nn::Module<KeyBelow> {
  std::vector<std::string> names;
  int requests;
  KeyBelow(std::vector<std::string> names, int requests)
      : names(std::move(names)), requests(requests) {}
  Array call() {
    if (names.size() == 1) return KeyAt(requests, names[0])();
    return KeyBelow({names.begin() + 1, names.end()}, requests).named(names[0])();
  }
};
std::vector<std::uint32_t> words(const Array& key) { return key.to_vector<std::uint32_t>(); }

struct MLP : nn::Module<MLP> {
  std::int64_t features;
  explicit MLP(std::int64_t features) : features(features) {}
  Array call(Array x) {
    x = nn::Dense(features)(x);
    x = nn::relu(x);
    return nn::Dense(features)(x);
  }
};
const Array key0 = rp::random::PRNGKey(0);

}  // namespace

TEST_CASE("keys are folded from the path and the number of requests, as in Flax") {
  const auto at = [](std::vector<std::string> names, int requests, int seed) {
    return words(
        KeyBelow(std::move(names), requests).init_with_output(rp::random::PRNGKey(seed)).first);
  };
  using Words = std::vector<std::uint32_t>;
  CHECK(at({"Dense_0"}, 1, 0) == Words{0xb5672c9f, 0xda530980});
  CHECK(at({"Dense_0"}, 1, 42) == Words{0x4b7a05a2, 0x4f2f72d7});
  CHECK(at({"Dense_1"}, 1, 0) == Words{0xd1dacb12, 0xf851ba60});
  CHECK(at({"CheckpointMLP_0", "Dense_0"}, 1, 42) == Words{0x06c464b1, 0x0f539327});
  CHECK(at({"Dense_0"}, 3, 0) == Words{0x59f7ef54, 0x888464f9});
  CHECK(at({"Dropout_0"}, 1, 0) == Words{0x47629426, 0x722aaba7});
  CHECK(at({"Dense_0"}, 256, 42) == Words{0x9bd62910, 0xb163e248});
  CHECK(words(KeyAt(1).init_with_output(key0).first) == Words{0x5527b11e, 0xc7be436d});
}

TEST_CASE("FLAX_FIX_RNG_SEPARATOR keeps the names of a path apart") {
  using Words = std::vector<std::uint32_t>;
  setenv("FLAX_FIX_RNG_SEPARATOR", "True", 1);
  CHECK(words(KeyBelow({"Dense_0"}, 1).init_with_output(key0).first) ==
        Words{0x0e8675d2, 0x930ad4bc});
  CHECK(words(KeyAt(1).init_with_output(key0).first) == Words{0x5bf9a2f6, 0xdcd46d0e});
  unsetenv("FLAX_FIX_RNG_SEPARATOR");
}

TEST_CASE("typed keys give the same parameters as raw ones") {
  flax::check_bits(MLP(3).init(rp::random::key(5), wave({4})),
                   MLP(3).init(rp::random::PRNGKey(5), wave({4})));
}

TEST_CASE("init inside jit makes the same parameters") {
  const auto compiled = rp::jit([](Array key, Array x) { return MLP(3).init(key, x); });
  flax::check_bits(compiled(key0, wave({4})), MLP(3).init(key0, wave({4})));
}

TEST_CASE("threads may share a module: each apply works on its own copy") {
  const Array x = wave({4});
  const auto model =
      nn::remat<nn::Sequential>()(std::vector<nn::Layer>{nn::Dense(3), nn::relu, nn::Dense(2)});
  const Dict variables = model.init(key0, x);
  const std::vector<float> wanted = model.apply(variables, x).to_vector<float>();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        if (model.apply(variables, x).to_vector<float>() != wanted) ++wrong;
        if (model.init(key0, x).dict("params").size() != 2) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("filters: all, none, names, all but") {
  CHECK(nn::Filter(true).matches("a"));
  CHECK_FALSE(nn::Filter(false).matches("a"));
  CHECK(nn::Filter({"a", "b"}).matches("b"));
  CHECK_FALSE(nn::DenyList({"a", "b"}).matches("b"));
  CHECK((nn::DenyList("a") | nn::Filter("a")).matches("a"));
  CHECK_FALSE((nn::DenyList("a") & nn::Filter({"a", "b"})).matches("a"));
  CHECK((nn::DenyList("a") & nn::Filter({"a", "b"})).matches("b"));
  CHECK((nn::DenyList("a") | nn::DenyList("b")).matches("a"));
  CHECK_FALSE((nn::DenyList("a") & nn::DenyList("b")).matches("b"));
}

TEST_CASE("bind gives a module to call step by step, unbind gives both back") {
  const Array x = wave({4});
  const MLP model(3);
  const Dict variables = model.init(key0, x);
  MLP bound = model.bind(variables);
  CHECK(bound(x).to_vector<float>() == model.apply(variables, x).to_vector<float>());
  const auto [module, again] = bound.unbind();
  flax::check_bits(again, variables);
  MLP alone = module;
  CHECK_THROWS_AS(alone(x), rp::TypeError);
}

TEST_CASE("tabulate lists calls with inputs, outputs, variables and bytes, and computes nothing") {
  struct BNM : nn::Module<BNM> {
    Array call(Array x) {
      x = nn::Dense(4)(x);
      return nn::BatchNorm({.use_running_average = false})(x);
    }
  };
  const std::string plain = BNM().tabulate(key0, wave({2, 4}));
  CHECK(plain == R"(BNM Summary
+-------------+-----------+--------------+--------------+------------------+----------------------+
| path        | module    | inputs       | outputs      | batch_stats      | params               |
+=============+===========+==============+==============+==================+======================+
|             | BNM       | float32[2,4] | float32[2,4] |                  |                      |
+-------------+-----------+--------------+--------------+------------------+----------------------+
| Dense_0     | Dense     | float32[2,4] | float32[2,4] |                  | bias: float32[4]     |
|             |           |              |              |                  | kernel: float32[4,4] |
|             |           |              |              |                  |                      |
|             |           |              |              |                  | 20 (80 B)            |
+-------------+-----------+--------------+--------------+------------------+----------------------+
| BatchNorm_0 | BatchNorm | float32[2,4] | float32[2,4] | mean: float32[4] | bias: float32[4]     |
|             |           |              |              | var: float32[4]  | scale: float32[4]    |
|             |           |              |              |                  |                      |
|             |           |              |              | 8 (32 B)         | 8 (32 B)             |
+-------------+-----------+--------------+--------------+------------------+----------------------+
|             |           |              | Total        | 8 (32 B)         | 28 (112 B)           |
+-------------+-----------+--------------+--------------+------------------+----------------------+
Total Parameters: 36 (144 B)
)");
  const std::string lifted = nn::remat<BNM>()().tabulate(key0, wave({2, 4}));
  CHECK(lifted == "CheckpointBNM Summary" + plain.substr(plain.find('\n')));
}

TEST_CASE("messages about variables say what is missing, where, and what to pass") {
  const Array x = wave({3});
  const nn::Dense layer(4);
  const Dict variables = layer.init(key0, x);
  CHECK_THROWS_WITH_AS(layer.apply({}, x),
                       Contains("param: collection \"params\" is empty, wanted \"kernel\" in /"),
                       rp::TypeError);
  Dict no_bias;
  no_bias["params"]["kernel"] = variables.dict("params")["kernel"];
  CHECK_THROWS_WITH_AS(layer.apply(no_bias, x),
                       Contains("param: no \"bias\" in / of collection \"params\", got \"kernel\""),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(layer.apply(variables, wave({4})),
                       Contains("param: \"kernel\" in / must have shape (4, 4), got (3, 4)"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(layer.apply(variables, wave({4})), Contains("module_test.cpp"),
                       rp::TypeError);
  Dict twice;
  twice["params"] = variables;
  CHECK_THROWS_WITH_AS(layer.apply(twice, x),
                       Contains("apply: the variables have one \"params\" level too many"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      layer.apply(variables.dict("params"), x),
      Contains("apply: the variables must be a dictionary of collections, got an array \"bias\""),
      rp::TypeError);
}

TEST_CASE("messages about collections and keys") {
  const nn::BatchNorm norm({.use_running_average = false});
  const Array x = wave({4, 3});
  const Dict variables = norm.init(key0, x);
  CHECK_THROWS_WITH_AS(norm.apply(variables, x),
                       Contains("put_variable: collection \"batch_stats\" is immutable, got a new "
                                "value for \"mean\" in /"),
                       rp::TypeError);
  const nn::Dropout dropout(0.5, {.deterministic = false});
  CHECK_THROWS_WITH_AS(dropout.apply({}, x),
                       Contains("make_rng: the module needs a key for \"dropout\", got no keys"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(dropout.apply({}, {.rngs = {{"noise", key0}}}, x),
                       Contains("got keys for \"noise\""), rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::Dense(2).init(rp::arange(3), x),
      Contains("Dense: the key for \"params\" must be a key or u32[2], got i32[3]"), rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::Dropout(0.5).apply({}, x),
      Contains("deterministic: it must be given to the layer or to the call, got neither"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(dropout.apply({}, x, true), Contains("got both"), rp::TypeError);
  struct Reads : nn::Module<Reads> {
    Array call() { return variable("state", "s", nullptr).value(); }
  };
  CHECK_THROWS_WITH_AS(Reads().apply({}),
                       Contains("variable: collection \"state\" is empty, wanted \"s\" in /"),
                       rp::TypeError);
}

TEST_CASE("a name is used once: by submodules, parameters and members") {
  struct TwoNamed : nn::Module<TwoNamed> {
    Array call(Array x) {
      x = nn::Dense(3, {.name = "a"})(x);
      return nn::Dense(3, {.name = "a"})(x);
    }
  };
  CHECK_THROWS_WITH_AS(TwoNamed().init(key0, wave({3})),
                       Contains("submodule: the name \"a\" is in use in TwoNamed"), rp::TypeError);
  struct ParamAndChild : nn::Module<ParamAndChild> {
    Array call(Array x) {
      const Array w = param("Dense_0", init::ones_init(), {3});
      return nn::Dense(3)(x * w);
    }
  };
  CHECK_THROWS_WITH_AS(ParamAndChild().init(key0, wave({3})),
                       Contains("submodule: the name \"Dense_0\" is in use in ParamAndChild"),
                       rp::TypeError);
  struct SameParam : nn::Module<SameParam> {
    Array call(Array) {
      const Array w = param("w", init::ones_init(), {3});
      const Array v = param("w", init::ones_init(), {3});
      return w + v;
    }
  };
  CHECK_THROWS_WITH_AS(SameParam().init(key0, wave({3})),
                       Contains("param: the name \"w\" is in use in SameParam"), rp::TypeError);
  struct TwoCollections : nn::Module<TwoCollections> {
    Array call(Array) {
      const Array w = param("w", init::ones_init(), {3});
      const nn::Variable v = variable("state", "w", [] { return rp::ones({3}); });
      return w + v.value();
    }
  };
  CHECK(TwoCollections().init(key0, wave({3})).size() == 2);
  struct MemberAndChild : nn::Module<MemberAndChild> {
    nn::Dense d{3};
    REPRISE_SUBMODULES(d)
    Array call(Array x) { return nn::Dense(3, {.name = "d"})(x); }
  };
  CHECK_THROWS_WITH_AS(MemberAndChild().init(key0, wave({3})),
                       Contains("the name \"d\" is in use in MemberAndChild"), rp::TypeError);
}

TEST_CASE("a module without variables cannot be called, and a scope ends with its call") {
  CHECK_THROWS_WITH_AS(MLP(3)(wave({3})),
                       Contains("MLP: a module cannot be called alone, it has no variables"),
                       rp::TypeError);
  static std::optional<nn::Dense> kept;
  struct Leaks : nn::Module<Leaks> {
    Array call(Array x) {
      kept = nn::Dense(3);
      return (*kept)(x);
    }
  };
  Leaks().init(key0, wave({3}));
  CHECK_THROWS_WITH_AS((*kept)(wave({4})), Contains("param: \"kernel\""), rp::TypeError);
  CHECK_THROWS_WITH_AS(kept->make_rng(),
                       Contains("is used after the init, apply or lifted call it belongs to"),
                       rp::TraceError);
  kept.reset();
}

TEST_CASE("members must be listed") {
  struct Unlisted : nn::Module<Unlisted> {
    nn::Dense d{3};
    Array call(Array x) { return d(x); }
  };
  CHECK_THROWS_WITH_AS(Unlisted().init(key0, wave({3})),
                       Contains("Dense: a module cannot be called alone"), rp::TypeError);
  struct Holder : nn::Module<Holder> {
    Array call(Array x) {
      Unlisted inner;
      return inner(x);
    }
  };
  CHECK_THROWS_WITH_AS(
      Holder().init(key0, wave({3})),
      Contains("submodule: Unlisted has a member of class Dense that it does not list"),
      rp::TypeError);
}

TEST_CASE("a module that belongs to the outside of a lifted call cannot be filled inside") {
  struct Root : nn::Module<Root> {
    Array call(Array x) {
      nn::Dense outside(3);
      outside.path();  // it has its place now
      const auto body = [&](Root&, Array h) { return outside(h); };
      return nn::remat(body)(*this, x);
    }
  };
  CHECK_THROWS_WITH_AS(Root().init(key0, wave({3})),
                       Contains("belongs to the outside of the lifted call"), rp::TraceError);
}

TEST_CASE("named says a name where a module is made, and not later") {
  struct Late : nn::Module<Late> {
    Array call(Array x) {
      nn::Dense d(3);
      x = d(x);
      return std::move(d).named("late")(x);
    }
  };
  CHECK_THROWS_WITH_AS(Late().init(key0, wave({3})),
                       Contains("named: Dense has the name \"Dense_0\" already, got \"late\""),
                       rp::TypeError);
}

TEST_CASE("a call that ran several methods cannot make children afterwards") {
  struct Mixed : nn::Module<Mixed> {
    Array f(Array x) { return nn::Dense(3)(x); }
    Array call(Array x) {
      x = run<&Mixed::f>(x);
      x = run<&Mixed::f>(x);
      return nn::Dense(3)(x);
    }
  };
  CHECK_THROWS_WITH_AS(Mixed().init(key0, wave({3})),
                       Contains("Mixed: a call that ran several methods must not make children or "
                                "variables itself, got Dense"),
                       rp::TypeError);
}

TEST_CASE("layers say which argument does not fit") {
  CHECK_THROWS_WITH_AS(
      nn::MultiHeadDotProductAttention(3).init(key0, wave({1, 2, 4})),
      Contains("the number of heads must divide qkv_features, got 3 heads for 4 features"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Embed(4, 2).init(key0, wave({2})), Contains("integer"), rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Dense(4).init(key0, Array(1.0)),
                       Contains("Dense: the input must have an axis of features, got f32[]"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Conv(4, {3, 3}).init(key0, wave({2, 2})),
                       Contains("Conv: the input must have an axis for each of the 2 dimensions"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::Conv(4, 3, {.feature_group_count = 2}).init(key0, wave({1, 5, 3})),
      Contains("Conv: feature_group_count must divide the 3 input features, got 2"), rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::Conv(4, 3, {.mask = rp::ones({3})}).init(key0, wave({1, 5, 3})),
      Contains("Conv: the mask must have the shape of the kernel (3, 3, 4), got f32[3]"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Einsum({3, 4}, {.einsum_str = "ab,bc"}).init(key0, wave({2, 3})),
                       Contains("Einsum: the equation must have two operands and a result"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Einsum({3, 4}, {.einsum_str = "ab,...c->ac"}).init(key0, wave({2, 3})),
                       Contains("Einsum: the kernel must have a letter for each dimension"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::GroupNorm({.group_size = 2}).init(key0, wave({2, 4})),
                       Contains("one of num_groups and group_size must be given, got both"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::GroupNorm({.num_groups = std::nullopt, .group_size = 3}).init(key0, wave({2, 4})),
      Contains("GroupNorm: group_size must divide the 4 features, got 3"), rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::Sequential({}).init(key0, wave({2})),
                       Contains("Sequential: at least one layer is needed"), rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::MultiHeadDotProductAttention(2).init(
                           key0, wave({1, 2, 4}), std::optional<Array>(), wave({1, 2, 4})),
                       Contains("attention: values need keys, got none"), rp::TypeError);
  const nn::MultiHeadDotProductAttention decoder(2, {.decode = true});
  const Dict variables = decoder.init(key0, wave({1, 4, 4}));
  CHECK_THROWS_WITH_AS(decoder.apply(variables, nn::mutable_("cache"), wave({1, 2, 4})),
                       Contains("attention: decoding takes one position per call, as (1, 1, 2, 2)"),
                       rp::TypeError);
}

namespace {
struct Step : nn::Module<Step> {
  std::pair<Array, Array> call(Array c, Array x) {
    c = nn::Dense(c.shape(-1))(c + x);
    return {c, c};
  }
};
const nn::VariableAxes params_stacked = {{"params", 0}};
const nn::SplitRngs params_split = {{"params", true}};
}  // namespace

TEST_CASE("scan and vmap say what does not fit") {
  const Array x = wave({4});
  const auto scanned = [&](nn::LiftScanOptions o) {
    if (o.variable_axes.empty() && o.variable_broadcast.empty()) o.variable_axes = params_stacked;
    if (o.split_rngs.empty()) o.split_rngs = params_split;
    return nn::scan<Step>(o)();
  };
  CHECK_THROWS_WITH_AS(scanned({.in_axes = {nn::broadcast}}).init(key0, x, x),
                       Contains("scan: no argument is cut to pieces, so length must be given"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      scanned({.length = 2}).init(key0, x, wave({3, 4})),
      Contains("scan: length must be the size of the arguments' axes, got 2 for 3"), rp::TypeError);
  CHECK_THROWS_WITH_AS(
      scanned({.in_axes = {0, 0}}).init(key0, x, wave({3, 4})),
      Contains("scan: in_axes must have one entry for all or one for each argument, got 2 for 1"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      scanned({.in_axes = {2}}).init(key0, x, wave({3, 4})),
      Contains("scan: in_axes must name an axis of the argument, got 2 for f32[3,4]"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      scanned({.out_axes = {0, 0}}).init(key0, x, wave({3, 4})),
      Contains("scan: out_axes must have one entry for all or one for each array of the result"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      scanned({.out_axes = {nn::broadcast}}).init(key0, x, wave({3, 4})),
      Contains("scan: a broadcast variable or result must be the same in all steps"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(scanned({.out_axes = {nn::broadcast}, .check_constancy_invariants = false})
                           .init(key0, x, wave({3, 4})),
                       Contains("scan: a broadcast result needs check_constancy_invariants"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::scan<Step>({.variable_axes = params_stacked, .split_rngs = {{"dropout", true}}})().init(
          key0, x, wave({3, 4})),
      Contains("make_rng: Dense_0 needs a key for \"params\", got no keys"), rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::remat_scan<nn::Dense>({})(4).init(key0, x),
                       Contains("remat_scan: lengths must name at least one loop"), rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::scan<KeyAt>({.length = 2})(1).init(key0),
                       Contains("scan: the first argument is the carry, got no arguments"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::vmap<Step>()().init(key0, wave({2, 4}), wave({3, 4})),
      Contains("vmap: the arguments must have the same size along their axes, got 2 and 3"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(nn::vmap<Step>({.in_axes = {std::nullopt}})().init(key0, x, x),
                       Contains("so axis_size must be given"), rp::TypeError);
}

TEST_CASE(
    "scan refuses carried variables that are made in the loop, and reads unlisted collections not "
    "at all") {
  struct Counter : nn::Module<Counter> {
    std::pair<Array, rp::None> call(Array c) {
      nn::Variable n = variable("counter", "n", [] { return rp::zeros({}); });
      return {c + n.value(), rp::none};
    }
  };
  CHECK_THROWS_WITH_AS(
      nn::scan<Counter>({.variable_carry = "counter", .length = 2})().init(key0, wave({2})),
      Contains(
          "scan: a carried variable must exist before the loop, got a new one ['counter']['n']"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::scan(nn::remat<Counter>(), {.length = 2})().init(key0, wave({2})),
      Contains("variable: collection \"counter\" is empty, wanted \"n\" in /remat(scan())"),
      rp::TypeError);
  struct OfCarry : nn::Module<OfCarry> {
    std::pair<Array, rp::None> call(Array c) {
      nn::Variable n = variable("shared", "n", [&] { return c; });
      return {c + n.value(), rp::none};
    }
  };
  CHECK_THROWS_WITH_AS(
      nn::scan<OfCarry>({.variable_broadcast = "shared", .length = 2})().init(key0, wave({2})),
      Contains("depends on the carry or on a slice"), rp::TypeError);
}

TEST_CASE(
    "scan hands results that are the same in all steps out once, and collections in or out only") {
  struct Constant : nn::Module<Constant> {
    std::pair<Array, std::pair<Array, Array>> call(Array c) {
      const Array w = param("w", init::normal(1.0), {2});
      return {c + w, {w, c}};
    }
  };
  const auto model = nn::scan<Constant>({.variable_broadcast = "params",
                                         .split_rngs = {{"params", false}},
                                         .out_axes = {nn::broadcast, 0},
                                         .length = 3})();
  const auto [out, variables] = model.init_with_output(key0, wave({2}));
  CHECK(out.second.first.shape() == rp::Shape{2});
  CHECK(out.second.second.shape() == rp::Shape{3, 2});
  CHECK(out.second.first.to_vector<float>() == variables.dict("params")["w"].to_vector<float>());
  const auto out_only = nn::scan<Constant>(
      {.variable_axes = {{"params", nn::Out(0)}}, .split_rngs = {{"params", true}}, .length = 3})();
  CHECK(out_only.init(key0, wave({2})).dict("params")["w"].shape() == rp::Shape{3, 2});
  CHECK_THROWS_WITH_AS(out_only.apply(out_only.init(key0, wave({2})), wave({2})),
                       Contains("collection \"params\" is empty"), rp::TypeError);
  const auto in_only =
      nn::scan<Constant>({.variable_axes = {{"params", nn::In(0)}}, .length = 3})();
  CHECK(in_only.apply(out_only.init(key0, wave({2})), wave({2})).first.shape() == rp::Shape{2});
}
