// Fits the initial state of a wave equation to what is measured at the end: the gradient runs back
// through 400 steps and keeps 8 states.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;
using Wave = std::tuple<Array, Array>;  // height and velocity

constexpr int n = 32, steps = 400;

// What the neighbours add: the Laplacian on a torus.
Array laplace(const Array& u) {
  Array x = rp::roll(u, 1, 0) + rp::roll(u, -1, 0);
  Array y = rp::roll(u, 1, 1) + rp::roll(u, -1, 1);
  return x + y - 4.0 * u;
}

Array height_at_end(const Array& start) {
  auto step = [](Array, Wave w) {
    auto [u, v] = w;
    Array faster = v + 0.1 * laplace(u);
    Array moved = u + 0.5 * faster;
    return Wave{moved, faster};
  };
  return std::get<0>(
      rp::fori_loop(0, steps, step, Wave{start, rp::zeros({n, n})}, {.checkpoints = 8}));
}

int main() {
  Array i = rp::arange(n).astype(rp::float32) / n;
  Array hill = rp::exp(-40.0 * (i - 0.4) * (i - 0.4));
  const Array truth = rp::outer(hill, hill), measured = rp::jit(height_at_end)(truth);

  auto misfit = [=](Array start) {
    Array difference = height_at_end(start) - measured;
    return rp::sum(difference * difference);
  };
  auto fit = rp::jit(rp::value_and_grad(misfit));
  Array start = rp::zeros({n, n});
  float first = 0, last = 0;
  for (int round = 0; round < 60; ++round) {
    auto [loss, slope] = fit(start);
    last = loss.item<float>();
    if (round == 0) first = last;
    start = start - 0.2 * slope;
  }
  const rp::LoopSchedule schedule = rp::loop_schedule(steps, 8);
  std::cout << "evaluations besides the reversal's own: " << schedule.advances
            << ", no step more than " << schedule.repetitions << " times\n";
  std::cout << "the misfit fell to less than a tenth: " << (last < 0.1f * first ? "yes" : "no")
            << "\n";
}
