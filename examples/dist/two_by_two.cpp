// Both at once on a grid of ranks: rows of the batch along one axis, hidden units along the other.
//
//   mpirun -np 4 build/release/examples/dist/two_by_two
#include "task.h"

using namespace task;

int main() {
  rp::dist::init();
  const std::int64_t n = rp::dist::size(), along = n % 2 == 0 ? 2 : 1;
  const rp::Mesh mesh({{"data", n / along}, {"model", along}});
  const auto wanted = alone(model(2));

  const auto step = [](Model m, Array x, Array y) {
    const auto of = [&](Model at) {
      Array h = x;
      for (const Block& b : at) {
        Array inner = rp::matmul(h, b.up);
        inner = rp::tanh(inner);
        const Array part = rp::matmul(inner, b.down);
        h = h + rp::lax::psum(part, "model");
      }
      const Array d = h - y;
      return rp::lax::pmean(rp::mean(rp::square(d)), "data");
    };
    const auto [value, grads] = rp::value_and_grad(of)(m);
    return std::pair(descend(m, grads), value);
  };

  // Of each block the columns of `up` and the rows of `down`, the same for all ranks of "data".
  const P column(rp::none, "model"), row("model");
  const std::vector<P> own{column.local(), row.local(), column.local(), row.local()};
  std::vector<P> results = own;
  results.push_back(P());  // the loss
  const auto train = rp::jit(rp::shard_map(step, mesh, {own, P("data"), P("data")}, results));

  Model m = model(2);
  for (Block& b : m) b = {rp::shard(b.up, mesh, column), rp::shard(b.down, mesh, row)};
  std::vector<double> losses;
  const Array x = inputs(), y = targets();
  for (int i = 0; i < steps; ++i) {
    auto [next, value] = train(m, x, y);
    m = next;
    losses.push_back(value.item<double>());
  }
  compare("two by two", losses, wanted);
}
