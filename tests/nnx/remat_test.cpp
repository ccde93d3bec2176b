// nnx::remat: the same values and gradients as without, state written once, golden numbers of Flax.
#include "nnx/checks.h"
#include "nnx/golden.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

struct Net : nnx::Module {
  nnx::Linear linear;
  nnx::BatchNorm bn;
  nnx::Dropout dropout;
  explicit Net(nnx::Rngs& rngs) : linear(4, 4, rngs), bn(4, rngs), dropout(0.5, rngs) {}
  Array operator()(Array x) {
    x = linear(x);
    x = bn(x);
    return dropout(x);
  }
  REPRISE_FIELDS(linear, bn, dropout)
};
Array forward(Net& net, Array x) { return net(x); }

struct Block : nnx::Module {
  nnx::Linear linear;
  explicit Block(const nnx::Rngs& rngs) : linear(4, 4, rngs) {}
  Array operator()(Array x) { return rp::nn::relu(linear(x)); }
  REPRISE_FIELDS(linear)
};

// As a part of the largest gradient: that of a bias before batch norm is zero but for rounding.
double worst_difference(const nnx::State& a, const nnx::State& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a.leaf(i).path == b.leaf(i).path);
    difference =
        std::max(difference, rp::max(rp::abs(a.leaf(i).value - b.leaf(i).value)).item<double>());
    largest = std::max(largest, rp::max(rp::abs(b.leaf(i).value)).item<double>());
  }
  return difference / largest;
}

}  // namespace

TEST_CASE("remat with batch norm and dropout gives Flax's outputs, statistics and counts") {
  const auto& c = golden::flax().at("nnx_remat_bn_dropout_seed0");
  nnx::Rngs rngs(0);
  Net net(rngs);
  const Array x = golden::array(c.at("x"));
  CHECK(golden::worst_ulp(net.linear.kernel, c.at("kernel")) == 0);
  const auto words = rp::random::key_data(net.dropout.rngs->key).to_vector<std::uint32_t>();
  CHECK(words == std::vector<std::uint32_t>{0x883ffec1, 0x19dbc576});
  const auto fwd = nnx::remat(forward);
  const Array out1 = fwd(net, x), out2 = fwd(net, x);
  CHECK(golden::worst_ratio(out1, c.at("out1")) < 1e-6);
  CHECK(golden::worst_ratio(out2, c.at("out2")) < 1e-6);
  CHECK(golden::worst_ratio(net.bn.mean, c.at("bn_mean_after2")) < 1e-6);
  CHECK(golden::worst_ratio(net.bn.var, c.at("bn_var_after2")) < 1e-6);
  CHECK(net.dropout.rngs->count.get_value().item<int>() == c.at("dropout_count_after2").get<int>());
}

TEST_CASE("scan over remat blocks made by vmap gives Flax's numbers") {
  const auto& c = golden::flax().at("nnx_scan_of_remat_seed1_3x4");
  nnx::Rngs rngs(1);
  const auto create =
      nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Block(r); }), {.splits = 3});
  Block blocks = create(rngs);
  CHECK(rngs.stream("default").count.get_value().item<int>() == 1);
  CHECK(golden::worst_ulp(blocks.linear.kernel, c.at("kernel")) == 0);
  CHECK(blocks.linear.bias->shape() == rp::Shape{3, 4});
  const auto fwd = nnx::scan(nnx::remat([](Block& block, Array x) { return block(x); }),
                             {.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}});
  const Array out = fwd(blocks, golden::array(c.at("x")));
  CHECK(golden::worst_ulp(out, c.at("out")) == 0);
}

TEST_CASE("scan with a checkpoint budget has the gradients of scan over remat blocks") {
  nnx::Rngs rngs(1);
  const auto create =
      nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Block(r); }), {.splits = 9});
  Block blocks = create(rngs);
  const Array x = rp::random::normal(rp::random::key(7), {6, 4});
  const auto apply = [](Block& block, Array v) { return rp::sin(block(v) + v); };
  const auto gradients = [&](nnx::ScanOptions options, bool compiled) {
    options.in_axes = {0, nnx::Carry};
    options.out_axes = {nnx::Carry};
    const auto loss = [=](Block& b, Array v) {
      return rp::sum(rp::square(nnx::scan(apply, options)(b, v)));
    };
    return compiled ? nnx::jit(nnx::grad(loss))(blocks, x) : nnx::grad(loss)(blocks, x);
  };
  const auto plain = gradients({}, false);
  for (const bool compiled : {false, true}) {
    CHECK(worst_difference(gradients({.checkpoints = 3}, compiled), plain) < 1e-6);
    CHECK(worst_difference(gradients({.checkpoint_bytes = 2 * 6 * 4 * 4}, compiled), plain) < 1e-6);
    CHECK(worst_difference(gradients({.checkpoints = 1, .disk_checkpoints = 2}, compiled), plain) <
          1e-6);
  }
}

TEST_CASE("remat equals no remat with dropout and batch norm, eager and compiled") {
  const Array x = rp::random::normal(rp::random::key(7), {6, 4});
  const auto loss_plain = [](Net& net, Array in) { return rp::sum(rp::square(net(in))); };
  const auto loss_remat = [](Net& net, Array in) {
    return rp::sum(rp::square(nnx::remat(forward)(net, in)));
  };
  nnx::Rngs rngs_a(3), rngs_b(3), rngs_c(3);
  Net plain(rngs_a), remat(rngs_b), compiled(rngs_c);
  const auto jitted = nnx::jit(nnx::value_and_grad(loss_remat));
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    const auto [loss_a, grads_a] = nnx::value_and_grad(loss_plain)(plain, x);
    const auto [loss_b, grads_b] = nnx::value_and_grad(loss_remat)(remat, x);
    const auto [loss_c, grads_c] = jitted(compiled, x);
    CHECK(loss_a.item<float>() == loss_b.item<float>());
    CHECK(worst_difference(grads_b, grads_a) < 1e-6);
    CHECK(worst_difference(grads_c, grads_a) < 1e-5);
    CHECK(loss_c.item<float>() == doctest::Approx(loss_a.item<float>()).epsilon(1e-5));
    CHECK(floats(plain.bn.mean) == floats(remat.bn.mean));
    CHECK(floats(plain.bn.var) == floats(remat.bn.var));
    for (const Net* net : {&plain, &remat, &compiled}) {
      CHECK(net->dropout.rngs->count.get_value().item<int>() == step + 1);
    }
  }
}

TEST_CASE("a bare variable that counts inside remat counts once") {
  const nnx::Param w(rp::ones({3})), b(rp::zeros({3}));
  const nnx::BatchStat count(rp::array(0, rp::int32));
  const auto f = nnx::remat(
      [](const nnx::Param& weight, const nnx::Param& bias, const nnx::BatchStat& calls, Array x) {
        calls += 1;
        return rp::sum(weight * x + bias);
      });
  const auto [loss, grads] = nnx::value_and_grad<0, 1>(f)(w, b, count, rp::array({1.0, 2.0, 3.0}));
  CHECK(loss.item<float>() == 6);
  CHECK(floats(std::get<0>(grads)) == std::vector<float>{1, 2, 3});
  CHECK(floats(std::get<1>(grads)) == std::vector<float>{1, 1, 1});
  CHECK(count.get_value().item<int>() == 1);
}

TEST_CASE("a rematted method differentiates to a state of its module") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const auto call = nnx::remat(&Block::operator());
  const auto loss = [call](Block& b, Array x, Array y) {
    return rp::mean(rp::square(y - call(b, x)));
  };
  const auto [value, grads] = nnx::value_and_grad(loss)(block, rp::ones({1, 4}), rp::ones({1, 4}));
  CHECK(value.shape().empty());
  CHECK(std::is_same_v<std::decay_t<decltype(grads)>, nnx::State>);
  CHECK(grads.at({"linear", "kernel"}).shape() == rp::Shape{4, 4});
  CHECK(grads.at({"linear", "bias"}).shape() == rp::Shape{4});
}

TEST_CASE(
    "a stack of linear layers made by vmap runs by scan over remat, as method and as function") {
  struct Stack : nnx::Module {
    nnx::Linear linear;
    explicit Stack(const nnx::Rngs& rngs) : linear(3, 3, rngs) {}
    Array step(Array x) {
      x = linear(x);
      return rp::nn::gelu(x);
    }
    REPRISE_FIELDS(linear)
  };
  nnx::Rngs rngs(0);
  const auto create =
      nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Stack(r); }), {.splits = 5});
  Stack stack = create(rngs);
  CHECK(stack.linear.kernel.shape() == rp::Shape{5, 3, 3});
  CHECK(stack.linear.bias->shape() == rp::Shape{5, 3});
  const nnx::ScanOptions along{.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}};
  const Array x = rp::ones({1, 3});
  const Array by_method = nnx::scan(nnx::remat(&Stack::step), along)(stack, x);
  const Array by_function =
      nnx::scan(nnx::remat([](Stack& s, Array in) { return s.step(in); }), along)(stack, x);
  CHECK(by_method.shape() == rp::Shape{1, 3});
  CHECK(floats(by_method) == floats(by_function));
}

TEST_CASE("remat around a function with its own derivative rule, also compiled") {
  struct Foo : nnx::Module {
    nnx::Param x{Array(1.0)}, y{Array(2.0)};
    int z = 0;
    REPRISE_FIELDS(x, y, z)
  };
  const auto rule =
      rp::custom_vjp([](Array x, Array y) { return rp::sin(x) * y; },
                     [](Array x, Array y) {
                       return std::pair{rp::sin(x) * y, std::tuple{rp::cos(x), rp::sin(x), y}};
                     },
                     [](std::tuple<Array, Array, Array> saved, Array ct) {
                       const auto& [cos_x, sin_x, y] = saved;
                       return std::tuple{cos_x * ct * y, sin_x * ct};
                     });
  const auto f = nnx::remat([rule](Foo& foo) {
    ++foo.z;
    return rule(foo.x.get_value(), foo.y.get_value());
  });
  Foo foo;
  const nnx::State eager = nnx::grad(f)(foo);
  CHECK(foo.z == 1);
  const nnx::State compiled = nnx::jit(nnx::grad(f))(foo);
  CHECK(foo.z == 2);
  for (const nnx::State* grads : {&eager, &compiled}) {
    CHECK(grads->at({"x"}).item<float>() == doctest::Approx(std::cos(1.0) * 2));
    CHECK(grads->at({"y"}).item<float>() == doctest::Approx(std::sin(1.0)));
  }
}

TEST_CASE("policies decide what remat saves of a module's function") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const auto [graphdef, state] = nnx::split(block);
  const auto residuals = [&def = graphdef, &s = state](const rp::CheckpointOptions& options) {
    const auto f = [&def, options](nnx::State values, Array x) {
      Block b = nnx::merge(def, values);
      const auto forward_block =
          nnx::remat([](Block& m, Array in) { return rp::sin(m(in)); }, options);
      return rp::sum(forward_block(b, x));
    };
    return rp::residual_report(f, s, rp::ones({2, 4})).computed_bytes();
  };
  const std::size_t nothing = residuals({}),
                    dots = residuals({.policy = rp::checkpoint_policies::dots_saveable}),
                    everything =
                        residuals({.policy = rp::checkpoint_policies::everything_saveable});
  CHECK(nothing == 0);
  CHECK(dots == 2 * 4 * sizeof(float));
  CHECK(everything > dots);
}
