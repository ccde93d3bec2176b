// Fully sharded: each rank has a part of every weight and of the optimiser's state; a block's
// weights are gathered where it runs, and under checkpoint once more in the backward pass.
//
//   mpirun -np 4 build/release/examples/dist/fsdp
#include "task.h"

using namespace task;

namespace {

// The block on gathered weights; the policy says whether they are kept for the backward pass.
template <class Policy>
Array sharded_loss(const Model& parts, Array x, Array y, const Policy& options) {
  const auto block = rp::checkpoint(
      [](Block part, Array h) {
        Array up = rp::lax::all_gather(part.up, "data", {.tiled = true});
        Array down = rp::lax::all_gather(part.down, "data", {.tiled = true});
        up = rp::checkpoint_name(up, "gathered");
        down = rp::checkpoint_name(down, "gathered");
        return apply({up, down}, h);
      },
      options);
  for (const Block& part : parts) x = block(part, x);
  const Array d = x - y;
  return rp::lax::pmean(rp::mean(rp::square(d)), "data");
}

std::size_t bytes_of(const rp::Arrays& arrays) {
  std::size_t n = 0;
  for (const Array& a : arrays) n += a.nbytes();
  return n;
}

}  // namespace

int main() {
  rp::dist::init();
  const rp::Mesh mesh({{"data", rp::dist::size()}});
  const auto wanted = alone(model(2));
  const Array x = inputs(), y = targets();
  const P own = P("data").local();  // stays with its rank

  const rp::CheckpointOptions again = {};
  const rp::CheckpointOptions kept = {
      .policy = rp::checkpoint_policies::save_only_these_names("gathered")};
  for (const auto& [name, options] : {std::pair("gathered again", again), {"kept", kept}}) {
    const auto step = [options = options](Model parts, Array in, Array out) {
      const auto of = [&](Model at) { return sharded_loss(at, in, out, options); };
      const auto [value, grads] = rp::value_and_grad(of)(parts);
      return std::pair(descend(parts, grads), value);
    };
    std::vector<P> out_specs(4, own);  // two blocks of two weights
    out_specs.push_back(P());          // the loss
    const auto train = rp::jit(rp::shard_map(step, mesh, {own, P("data"), P("data")}, out_specs));
    Model parts =
        rp::tree_map([&](const Array& w) { return rp::shard(w, mesh, P("data")); }, model(2));
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      auto [next, value] = train(parts, x, y);
      parts = next;
      losses.push_back(value.item<double>());
    }
    const std::size_t all = bytes_of(rp::tree_leaves(model(2)));
    if (bytes_of(rp::tree_leaves(parts)) * static_cast<std::size_t>(mesh.size()) != all) return 1;
    compare(name, losses, wanted);
  }
}
