// A pipeline: each rank is a stage with programs of its own. Parts of a batch follow each other
// through the stages, one forward and one backward (1F1B), so that at most as many are under way at
// a stage as there are stages from there on.
//
//   mpirun -np 4 build/release/examples/dist/pipeline
#include "task.h"

#include <deque>

using namespace task;

int main() {
  rp::dist::init();
  const auto stage = static_cast<int>(rp::dist::rank()),
             stages = static_cast<int>(rp::dist::size());
  const bool is_first = stage == 0, is_last = stage == stages - 1;
  constexpr int parts = 8;
  const auto wanted = alone(model(stages));

  Block mine = model(stages)[static_cast<std::size_t>(stage)];
  // Programs of a stage: forward, and backward by computing the stage again.
  const auto forward = rp::jit([](Block b, Array x) { return apply(b, x); });
  const auto backward = rp::jit([](Block b, Array x, Array ct) {
    return rp::vjp([](Block w, Array in) { return apply(w, in); }, b, x).second(ct);
  });
  const auto error = rp::jit([](Array out, Array y) {
    return rp::value_and_grad([](Array o, Array t) { return rp::mean(rp::square(o - t)); })(out, y);
  });

  const rp::Arrays x = rp::split(inputs(), parts), y = rp::split(targets(), parts);
  const rp::Type row = x[0].type();
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    Block grads = rp::tree_map([](const Array& w) { return rp::zeros_like(w); }, mine);
    std::deque<std::pair<Array, Array>> under_way;  // input and output of this stage
    double loss_sum = 0;
    int forwards = 0, backwards = 0;
    const auto go_forward = [&] {
      const Array in =
          is_first ? x[static_cast<std::size_t>(forwards)] : rp::dist::recv(row, stage - 1);
      const Array out = forward(mine, in);
      if (!is_last) rp::dist::send(out, stage + 1);
      under_way.emplace_back(in, out);
      ++forwards;
    };
    const auto go_back = [&] {
      const auto [in, out] = under_way.front();
      under_way.pop_front();
      Array ct;
      if (is_last) {
        const auto [value, slope] = error(out, y[static_cast<std::size_t>(backwards)]);
        loss_sum += value.item<double>() / parts;
        ct = slope / static_cast<double>(parts);
      } else {
        ct = rp::dist::recv(row, stage + 1);
      }
      const auto [of_weights, of_input] = backward(mine, in, ct);
      if (!is_first) rp::dist::send(of_input, stage - 1);
      grads = rp::tree_map([](const Array& a, const Array& b) { return a + b; }, grads, of_weights);
      ++backwards;
    };
    while (forwards < std::min(parts, stages - stage - 1)) go_forward();  // until the last has one
    while (forwards < parts) {
      go_forward();
      go_back();
    }
    while (backwards < parts) go_back();
    mine = descend(mine, grads);
    losses.push_back(loss_sum);
  }
  const rp::Mesh mesh({{"stage", stages}});
  const auto of_last = rp::shard_map([](Array v) { return rp::lax::psum(v, "stage"); }, mesh,
                                     P("stage").local(), P());
  for (double& value : losses) value = of_last(rp::array({value})).item<double>();
  compare("pipeline", losses, wanted);
}
