// nnx::remat: the same values and gradients as without, state written once, golden numbers of Flax.
#include <doctest/doctest.h>
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include "nnx/golden.h"

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

std::vector<float> floats(const Array& a) { return a.to_vector<float>(); }
// As a part of the largest gradient: that of a bias before batch norm is zero but for rounding.
double worst_difference(const nnx::State& a, const nnx::State& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a.leaf(i).path == b.leaf(i).path);
    difference = std::max(difference, rp::max(rp::abs(a.leaf(i).value - b.leaf(i).value)).item<double>());
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
  const auto create = nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Block(r); }), {.splits = 3});
  Block blocks = create(rngs);
  CHECK(rngs.stream("default").count.get_value().item<int>() == 1);
  CHECK(golden::worst_ulp(blocks.linear.kernel, c.at("kernel")) == 0);
  CHECK(blocks.linear.bias->shape() == rp::Shape{3, 4});
  const auto fwd = nnx::scan(nnx::remat([](Block& block, Array x) { return block(x); }),
                             {.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}});
  const Array out = fwd(blocks, golden::array(c.at("x")));
  CHECK(golden::worst_ulp(out, c.at("out")) == 0);
}

TEST_CASE("remat equals no remat with dropout and batch norm, eager and compiled") {
  const Array x = rp::random::normal(rp::random::key(7), {6, 4});
  const auto loss_plain = [](Net& net, Array in) { return rp::sum(rp::square(net(in))); };
  const auto loss_remat = [](Net& net, Array in) { return rp::sum(rp::square(nnx::remat(forward)(net, in))); };
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
  const auto f = nnx::remat([](const nnx::Param& weight, const nnx::Param& bias, const nnx::BatchStat& calls, Array x) {
    calls += 1;
    return rp::sum(weight * x + bias);
  });
  const auto [loss, grads] = nnx::value_and_grad<0, 1>(f)(w, b, count, rp::array({1.0, 2.0, 3.0}));
  CHECK(loss.item<float>() == 6);
  CHECK(floats(std::get<0>(grads)) == std::vector<float>{1, 2, 3});
  CHECK(floats(std::get<1>(grads)) == std::vector<float>{1, 1, 1});
  CHECK(count.get_value().item<int>() == 1);
}
