// Lifted checkpointing: what is saved, what is recomputed, and that nothing else changes.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
namespace policies = reprise::checkpoint_policies;
using flax::wave;
using rp::Array;
using rp::Dict;

namespace {

struct MLP : nn::Module<MLP> {
  std::int64_t features;
  int layers;
  explicit MLP(std::int64_t features, int layers = 3) : features(features), layers(layers) {}
  Array call(Array x) {
    for (int i = 0; i < layers; ++i) {
      if (i > 0) x = nn::relu(x);
      x = nn::Dense(features)(x);
    }
    return x;
  }
};

struct NoisyNorm : nn::Module<NoisyNorm> {
  Array call(Array x) {
    x = nn::Dense(8)(x);
    x = nn::BatchNorm({.use_running_average = false})(x);
    x = nn::gelu(x);
    x = nn::Dropout(0.5, {.deterministic = false})(x);
    return nn::Dense(8)(x);
  }
};

bool same_bits(const Array& a, const Array& b) {
  return a.to_vector<float>() == b.to_vector<float>();
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

struct Saved {
  std::size_t arguments = 0, computed = 0, dots = 0;
  bool operator==(const Saved&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Saved& s) {
  return out << s.arguments << " arguments, " << s.computed << " computed, " << s.dots << " dots";
}

template <class Model>
Saved saved_by(const Model& model) {
  const Array x = wave({4});
  const Dict variables = model.init(rp::random::PRNGKey(0), x);
  const auto loss = [&](Dict v, Array at) { return rp::sum(model.apply(v, at)); };
  Saved saved;
  for (const rp::SavedResidual& r : rp::saved_residuals(loss, variables, x)) {
    ++(r.origin.find("argument") != std::string::npos ? saved.arguments : saved.computed);
  }
  saved.dots = count_of(rp::make_jaxpr(rp::grad<0, 1>(loss))(variables, x).str(), "dot_general");
  return saved;
}

}  // namespace

TEST_CASE("a lifted class is named after the transformation and its target") {
  CHECK(nn::remat<MLP>()(4).class_name() == "CheckpointMLP");
  CHECK(nn::checkpoint<MLP>()(4).class_name() == "CheckpointMLP");
  CHECK(nn::checkpoint(nn::checkpoint<MLP>())(4).class_name() == "CheckpointCheckpointMLP");
  CHECK(nn::scan(nn::remat<MLP>(), {.length = 2})(4).class_name() == "ScanCheckpointMLP");
  CHECK(nn::vmap<nn::Dense>()(4).class_name() == "VmapDense");
  CHECK(nn::jit<MLP>()(4).class_name() == "JitMLP");
  CHECK(nn::remat_scan<nn::Dense>({.lengths = {2}})(4).class_name() == "Remat_scanDense");
}

TEST_CASE(
    "at the top remat changes neither parameters nor results, to the bit, whatever the policy") {
  const Array x = wave({3, 5});
  const MLP plain(6);
  const Dict variables = plain.init(rp::random::PRNGKey(3), x);
  const Array wanted = plain.apply(variables, x);
  const rp::Policy all[] = {{},
                            policies::everything_saveable,
                            policies::nothing_saveable,
                            policies::dots_saveable,
                            policies::dots_with_no_batch_dims_saveable,
                            policies::save_anything_except_these_names("a")};
  for (const rp::Policy& policy : all) {
    const auto model = nn::remat<MLP>({.policy = policy})(6);
    flax::check_bits(model.init(rp::random::PRNGKey(3), x), variables);
    CHECK(same_bits(model.apply(variables, x), wanted));
  }
}

TEST_CASE(
    "with dropout and batch normalisation remat gives the same bits, statistics and gradients") {
  const Array x = wave({4, 8});
  const nn::Rngs rngs = {{"dropout", rp::random::PRNGKey(2)}};
  const NoisyNorm plain;
  const auto lifted = nn::remat<NoisyNorm>()();
  const nn::Rngs keys = {{"params", rp::random::PRNGKey(0)}, {"dropout", rp::random::PRNGKey(1)}};
  const Dict variables = plain.init(keys, x);
  flax::check_bits(lifted.init(keys, x), variables);
  const nn::Mutable changes = nn::mutable_("batch_stats", {.rngs = rngs});
  const auto step = [&](const auto& model) {
    const auto loss = [&](Dict v) {
      const auto [y, changed] = model.apply(v, changes, x);
      return std::pair{rp::sum(rp::square(y)), changed};
    };
    return rp::value_and_grad(loss, rp::has_aux)(variables);
  };
  const auto [a, a_grads] = step(plain);
  const auto [b, b_grads] = step(lifted);
  CHECK(same_bits(a.first, b.first));
  flax::check_bits(a.second, b.second);  // moved once
  flax::check_close(a_grads.dict("params"), b_grads.dict("params"));
  const auto y = lifted.apply(variables, changes, x).first;
  CHECK(same_bits(y, plain.apply(variables, changes, x).first));
}

TEST_CASE("the recomputation draws the mask of the forward pass, compiled too") {
  struct Drop : nn::Module<Drop> {
    Array call(Array x) {
      x = rp::tanh(x);
      return nn::Dropout(0.5, {.deterministic = false})(x);
    }
  };
  const Array x = wave({64});
  const auto model = nn::remat<Drop>()();
  const auto out_and_grad = [&](Array at, Array key) {
    const auto f = [&](Array z) {
      const Array y = model.apply({}, {.rngs = {{"dropout", key}}}, z);
      return std::pair{rp::sum(y), y};
    };
    const auto [value, grad] = rp::value_and_grad(f, rp::has_aux)(at);
    return std::pair{value.second, grad};
  };
  const auto check = [](const std::pair<Array, Array>& got) {
    const std::vector<float> y = got.first.to_vector<float>(), dx = got.second.to_vector<float>();
    std::size_t zeros = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      CHECK((y[i] == 0) == (dx[i] == 0));
      zeros += y[i] == 0;
    }
    CHECK(zeros > 15);
    CHECK(zeros < 49);
  };
  check(out_and_grad(x, rp::random::PRNGKey(4)));
  check(rp::jit(out_and_grad)(x, rp::random::PRNGKey(4)));
}

TEST_CASE("residuals and products per policy are those of Flax") {
  const auto with = [](const rp::Policy& policy) {
    return saved_by(nn::remat<MLP>({.policy = policy})(4));
  };
  CHECK(saved_by(MLP(4)).dots == 9);
  CHECK(saved_by(MLP(4)).arguments == 4);
  CHECK(with({}) == Saved{6, 0, 11});
  CHECK(with(policies::nothing_saveable) == Saved{6, 0, 11});
  CHECK(with(policies::save_only_these_names("a")) == Saved{6, 0, 11});
  CHECK(saved_by(nn::remat<MLP>({.prevent_cse = false})(4)) == Saved{6, 0, 11});
  CHECK(with(policies::dots_saveable) == Saved{6, 2, 9});
  CHECK(with(policies::dots_with_no_batch_dims_saveable) == Saved{6, 2, 9});
  CHECK(with(policies::everything_saveable) == saved_by(MLP(4)));
}

TEST_CASE("wrapping twice saves and recomputes what wrapping once does") {
  CHECK(saved_by(nn::remat(nn::remat<MLP>())(4)) == Saved{6, 0, 11});
  CHECK(saved_by(nn::remat(nn::remat(nn::remat<MLP>()))(4)) == Saved{6, 0, 11});
}

TEST_CASE("convolutions: dots_saveable keeps them, dots_with_no_batch_dims_saveable does not") {
  struct Net : nn::Module<Net> {
    Array call(Array x) {
      x = nn::Conv(3, 3)(x);
      x = nn::relu(x);
      return nn::Conv(3, 3)(x);
    }
  };
  const Array x = wave({1, 8, 2});
  const auto convolutions = [&](const auto& model) {
    const Dict variables = model.init(rp::random::PRNGKey(0), x);
    const auto loss = [&](Dict v) { return rp::sum(model.apply(v, x)); };
    return count_of(rp::make_jaxpr(rp::grad(loss))(variables).str(), "conv_general_dilated");
  };
  CHECK(convolutions(Net()) == 5);
  CHECK(convolutions(nn::remat<Net>()()) == 6);
  CHECK(convolutions(nn::remat<Net>({.policy = policies::dots_saveable})()) == 5);
  CHECK(convolutions(nn::remat<Net>({.policy = policies::dots_with_no_batch_dims_saveable})()) ==
        6);
}

namespace {
struct Switch : nn::Module<Switch> {
  Array call(Array x, Array train) {
    if (train.item<bool>()) return nn::Dense(3)(x);
    return nn::Dense(3, {.use_bias = false})(x);
  }
};
struct TypedSwitch : nn::Module<TypedSwitch> {
  Array call(Array x, bool train) {
    x = nn::Dense(3)(x);
    return train ? rp::sin(x) : x;
  }
};
}  // namespace

TEST_CASE("static_argnums counts the module as 0: such an argument is not traced") {
  const Array x = wave({1, 3});
  const auto model = nn::remat<Switch>({.static_argnums = {2}})();
  const Dict variables = model.init(rp::random::PRNGKey(0), x, Array(true));
  CHECK(model.apply(variables, x, Array(true)).shape() == rp::Shape{1, 3});
  const auto negative = nn::remat<Switch>({.static_argnums = {-1}})();
  CHECK(
      same_bits(negative.apply(variables, x, Array(true)), model.apply(variables, x, Array(true))));
  CHECK_THROWS_AS(nn::remat<Switch>()().init(rp::random::PRNGKey(0), x, Array(true)),
                  rp::TraceError);
  CHECK_THROWS_WITH_AS(
      nn::remat<Switch>({.static_argnums = {3}})().init(rp::random::PRNGKey(0), x, Array(true)),
      doctest::Contains("static_argnums must be at least -3 and less than 3 for this call, got 3"),
      rp::TypeError);
}

TEST_CASE("a parameter of type bool is static without static_argnums") {
  const Array x = wave({1, 3});
  const auto model = nn::remat<TypedSwitch>()();
  const Dict variables = model.init(rp::random::PRNGKey(0), x, true);
  const Array plain = model.apply(variables, x, false);
  CHECK(same_bits(model.apply(variables, x, true), rp::sin(plain)));
}

namespace {
struct AutoEncoder : nn::Module<AutoEncoder> {
  nn::Dense e, d;
  AutoEncoder() : e(2), d(4) {}
  REPRISE_SUBMODULES(e, d)
  Array encode(Array x) { return rp::tanh(e(x)); }
  Array decode(Array z) { return rp::tanh(d(z)); }
  Array call(Array x) { return decode(encode(x)); }
};
template <auto method, class Model>
std::size_t remats(const Model& model, const Dict& variables, const Array& x) {
  return count_of(
      rp::make_jaxpr([&](Dict v) { return model.template apply<method>(v, x); })(variables).str(),
      "remat2[");
}
}  // namespace

TEST_CASE("methods other than call can be lifted, each with options of its own") {
  const Array x = wave({4}), z = wave({2});
  const Dict variables = AutoEncoder().init(rp::random::PRNGKey(0), x);
  const auto both = nn::remat<AutoEncoder, &AutoEncoder::encode, &AutoEncoder::decode>()();
  CHECK(remats<&AutoEncoder::encode>(both, variables, x) == 1);
  CHECK(remats<&AutoEncoder::decode>(both, variables, z) == 1);
  CHECK(remats<nullptr>(both, variables, x) == 0);
  const auto one =
      nn::remat<AutoEncoder>(nn::method<&AutoEncoder::encode>({.policy = policies::dots_saveable}),
                             nn::method<&AutoEncoder::decode>({.prevent_cse = false}))();
  CHECK(remats<&AutoEncoder::encode>(one, variables, x) == 1);
  const auto text =
      rp::make_jaxpr([&](Dict v) { return one.apply<&AutoEncoder::decode>(v, z); })(variables)
          .str();
  CHECK(count_of(text, "prevent_cse=False") == 1);
  CHECK(same_bits(both.apply<&AutoEncoder::encode>(variables, x),
                  AutoEncoder().apply<&AutoEncoder::encode>(variables, x)));
}

TEST_CASE(
    "filters hide collections and streams from the inside, messages name the path with the lifts") {
  const Array x = wave({4, 8});
  const nn::Rngs keys = {{"params", rp::random::PRNGKey(0)}, {"dropout", rp::random::PRNGKey(1)}};
  const Dict variables = NoisyNorm().init(keys, x);
  const nn::ApplyOptions options = {.rngs = {{"dropout", rp::random::PRNGKey(1)}}};
  CHECK_THROWS_WITH_AS(
      nn::remat<NoisyNorm>({.rngs = false})().apply(variables, nn::mutable_("batch_stats", options),
                                                    x),
      doctest::Contains("make_rng: Dropout_0 needs a key for \"dropout\", got no keys"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::remat<NoisyNorm>({.variables = "params"})().apply(variables, options, x),
      doctest::Contains(
          "variable: collection \"batch_stats\" is empty, wanted \"mean\" in /remat()/BatchNorm_0"),
      rp::TypeError);
  CHECK_THROWS_WITH_AS(
      nn::remat(nn::remat<NoisyNorm>())().apply(variables, options, x),
      doctest::Contains("collection \"batch_stats\" is immutable, got a new value for \"mean\" in "
                        "/remat(remat())/BatchNorm_0"),
      rp::TypeError);
}

TEST_CASE("the option concrete is an error that names its successor") {
  CHECK_THROWS_WITH_AS(
      nn::remat<MLP>({.concrete = true})(4).init(rp::random::PRNGKey(0), wave({4})),
      doctest::Contains("remat: the option concrete no longer exists"), rp::TypeError);
}

TEST_CASE("module paths ignore transformations") {
  struct Leaf : nn::Module<Leaf> {
    Array call(Array x) {
      CHECK(path() == std::vector<std::string>{"c1"});
      const Array again = param("w", nn::initializers::ones_init(), {2});
      return x * again;
    }
  };
  struct Root : nn::Module<Root> {
    Array call(Array x) { return nn::remat(nn::remat<Leaf>())().named("c1")(x); }
  };
  const Dict variables = Root().init(rp::random::PRNGKey(0), wave({2}));
  CHECK(variables.dict("params").dict("c1").contains("w"));
  CHECK_THROWS_WITH_AS(Root().apply({}, wave({2})),
                       doctest::Contains("wanted \"w\" in /remat(remat(c1))"), rp::TypeError);
}
