// Flax's own tests of Linen's checkpointing (docs/flax_tests.md), with our modules.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
using flax::wave;
using rp::Array;
using rp::Dict;

namespace {

const Array key = rp::random::key(0);
bool same_bits(const Array& a, const Array& b) {
  return a.to_vector<float>() == b.to_vector<float>();
}

// Dense layers 3, 4, 5, lifted or not, under the same names.
struct DenseStack : nn::Module<DenseStack> {
  bool is_lifted;
  explicit DenseStack(bool is_lifted) : is_lifted(is_lifted) {}
  Array call(Array x) {
    const auto RematDense = nn::remat<nn::Dense>();
    for (const std::int64_t features : {3, 4, 5}) {
      const std::string name = "layer_" + std::to_string(features);
      x = is_lifted ? RematDense(features).named(name)(x) : nn::Dense(features, {.name = name})(x);
      x = nn::relu(x);
    }
    return x;
  }
};

struct DecoratedStack : nn::Module<DecoratedStack> {
  Array call(Array x) {
    const auto body = [](DecoratedStack&, Array h) {
      for (const std::int64_t features : {3, 4, 5}) {
        h = nn::Dense(features, {.name = "layer_" + std::to_string(features)})(h);
        h = nn::relu(h);
      }
      return h;
    };
    return nn::remat(body)(*this, x);
  }
};

struct Gate : nn::Module<Gate> {
  bool wants_number;
  explicit Gate(bool wants_number) : wants_number(wants_number) {}
  Array call(Array x, Array train) {
    if (wants_number) {
      const bool is_training = train.item<bool>();
      CHECK(is_training);
    }
    return nn::Dense(3)(x);
  }
};

int setups = 0, calls = 0;
struct Leaf : nn::Module<Leaf> {
  std::optional<nn::Dense> dense;
  REPRISE_SUBMODULES(dense)
  void setup() {
    ++setups;
    dense = nn::Dense(2);
  }
  Array call(Array x) {
    ++calls;
    return (*dense)(x);
  }
  Array other(Array x) { return (*dense)(x); }
};
struct Tree : nn::Module<Tree> {
  int depth;
  explicit Tree(int depth) : depth(depth) {}
  Array call(Array x) {
    for (int i = 0; i < 4; ++i)
      x = depth == 1 ? nn::remat<Leaf>()()(x) : nn::remat<Tree>()(depth - 1)(x);
    return x;
  }
};

struct Methods : nn::Module<Methods> {
  Array call(Array x) {
    auto leaf = nn::remat<Leaf, nullptr, &Leaf::other>()().named("leaf");
    const Array a = leaf(x);
    const Array b = leaf.run<&Leaf::other>(x);
    return rp::stack({a, b});
  }
};

struct ResidualBlock : nn::Module<ResidualBlock> {
  Array call(Array x) {
    Array y = nn::Conv(x.shape(-1), {3, 3})(x);
    y = nn::BatchNorm({.use_running_average = false})(y);
    y = nn::relu(y);
    y = nn::Conv(x.shape(-1), {3, 3})(y);
    y = nn::BatchNorm({.use_running_average = false, .scale_init = nn::initializers::zeros_init()})(
        y);
    return nn::relu(x + y);
  }
};

}  // namespace

TEST_CASE(
    "test_remat: lifted layers give exactly the output of plain ones for the same variables") {
  const Array x = wave({1, 2});
  const Dict variables = DenseStack(false).init(key, x);
  const Array plain = DenseStack(false).apply(variables, x),
              lifted = DenseStack(true).apply(variables, x);
  CHECK(same_bits(plain, lifted));
  flax::check_bits(DenseStack(true).init(key, x), variables);
}

TEST_CASE("test_remat_decorated: the same with a lifted function of the module") {
  const Array x = wave({1, 2});
  const Dict variables = DenseStack(false).init(key, x);
  const Array plain = DenseStack(false).apply(variables, x),
              lifted = DecoratedStack().apply(variables, x);
  CHECK(same_bits(plain, lifted));
  flax::check_bits(DecoratedStack().init(key, x), variables);
}

TEST_CASE("test_remat_static_argnums: an argument is a number inside, or traced") {
  const Array x = wave({1, 4}), train = Array(true);
  const auto with_number = nn::remat<Gate>({.static_argnums = {2}})(true);
  CHECK(with_number.init_with_output(key, x, train).first.shape() == rp::Shape{1, 3});
  const auto traced = nn::remat<Gate>()(false);
  CHECK(traced.init_with_output(key, x, train).first.shape() == rp::Shape{1, 3});
  CHECK_THROWS_AS(nn::remat<Gate>()(true).init(key, x, train), rp::TraceError);
}

TEST_CASE("test_remat_decorator_static_argnums: the same for a lifted function") {
  struct Decorated : nn::Module<Decorated> {
    Array call(Array x, Array train) {
      const auto body = [](Decorated&, Array h, Array flag) {
        CHECK(flag.item<bool>());
        return nn::Dense(3)(h);
      };
      return nn::remat(body, {.static_argnums = {2}})(*this, x, train);
    }
  };
  CHECK(Decorated().init_with_output(key, wave({1, 4}), Array(true)).first.shape() ==
        rp::Shape{1, 3});
}

TEST_CASE("test_nested_setup_calls_count: nested lifted modules run each call and setup once") {
  setups = calls = 0;
  Tree(3).init(key, wave({2}));
  CHECK(calls == 64);
  CHECK(setups == 64);
}

TEST_CASE("test_multimethod_setup_calls: two lifted methods of one module agree") {
  setups = 0;
  const Array both = Methods().init_with_output(key, wave({2})).first;
  const Array first = both[0], second = both[1];
  CHECK(same_bits(first, second));
  CHECK(setups == 2);
}

TEST_CASE("test_remat_scan: one length stacks a hundred layers") {
  struct Big : nn::Module<Big> {
    Array call(Array x) {
      return nn::remat_scan<nn::Dense>({.lengths = {100}})(
          8, nn::DenseFields{.name = "dense_stack"})(x);
    }
  };
  const auto [y, variables] = Big().init_with_output(key, rp::ones({2, 8}));
  const Dict& stack = variables.dict("params").dict("dense_stack");
  CHECK(stack["kernel"].shape() == rp::Shape{100, 8, 8});
  CHECK(stack["bias"].shape() == rp::Shape{100, 8});
  CHECK(y.shape() == rp::Shape{2, 8});
}

TEST_CASE("test_big_resnet: two lengths stack parameters and statistics of fifty residual blocks") {
  const auto model =
      nn::remat_scan<ResidualBlock>({.lengths = {10, 5},
                                     .variable_axes = {{"params", 0}, {"batch_stats", 0}},
                                     .split_rngs = {{"params", true}}})();
  const Array x = wave({1, 4, 4, 2});
  const auto [y, variables] = model.init_with_output(key, x);
  CHECK(y.shape() == x.shape());
  CHECK(variables.dict("params").dict("Conv_0")["kernel"].shape() == rp::Shape{10, 5, 3, 3, 2, 2});
  CHECK(variables.dict("batch_stats").dict("BatchNorm_1")["mean"].shape() == rp::Shape{10, 5, 2});
  const auto [out, changed] = model.apply(variables, nn::mutable_("batch_stats"), x);
  CHECK(changed.dict("batch_stats").dict("BatchNorm_0")["var"].shape() == rp::Shape{10, 5, 2});
  const auto loss = [&, v = variables](Array at) {
    return rp::sum(model.apply(v, nn::mutable_("batch_stats"), at).first);
  };
  CHECK(rp::grad(loss)(x).shape() == x.shape());
}
