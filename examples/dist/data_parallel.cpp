// Data parallel: every rank has all weights and a part of each batch.
//
//   mpirun -np 4 build/release/examples/dist/data_parallel
#include "task.h"

using namespace task;

int main() {
  rp::dist::init();
  const rp::Mesh mesh({{"data", rp::dist::size()}});
  const auto wanted = alone(model(2));

  // The loss is the mean over all rows; the gradient of weights that all ranks share is summed over
  // the ranks by itself, layer by layer as the backward pass reaches them.
  const auto step = [](Model m, Array x, Array y) {
    const auto mean_loss = [&](Model at) { return rp::lax::pmean(loss(at, x, y), "data"); };
    const auto [value, grads] = rp::value_and_grad(mean_loss)(m);
    return std::pair(descend(m, grads), value);
  };
  const auto train = rp::jit(rp::shard_map(step, mesh, {P(), P("data"), P("data")}, P()));

  Model m = model(2);
  std::vector<double> losses;
  const Array x = inputs(), y = targets();
  for (int i = 0; i < steps; ++i) {
    auto [next, value] = train(m, x, y);
    m = next;
    losses.push_back(value.item<double>());
  }
  compare("data parallel", losses, wanted);
  check_same_bits(m, mesh);
}
