// What the examples on many ranks train: a small network of blocks on rows that each rank makes
// alike, by plain gradient descent; and the same training in one process, to compare with.
#pragma once

#include <reprise/dist.h>
#include <reprise/reprise.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace task {

namespace rp = reprise;
using rp::Array;
using P = rp::PartitionSpec;

constexpr std::int64_t width = 16, hidden = 32, rows = 32;
constexpr int steps = 50;
constexpr double rate = 0.1;

struct Block {
  Array up, down;  // width x hidden, hidden x width
};
using Model = std::vector<Block>;

inline Array numbers(const rp::Shape& shape, int seed) {
  return rp::random::normal(rp::random::key(seed), shape);
}
inline Model model(int blocks) {
  Model m;
  for (int i = 0; i < blocks; ++i) {
    const Array up = 0.2 * numbers({width, hidden}, 10 + i);
    const Array down = 0.1 * numbers({hidden, width}, 20 + i);
    m.push_back({up, down});
  }
  return m;
}
inline Array inputs() { return numbers({rows, width}, 1); }
inline Array targets() { return rp::sin(2.0 * inputs()); }

inline Array apply(const Block& b, Array x) {
  Array h = rp::matmul(x, b.up);
  h = rp::tanh(h);
  h = rp::matmul(h, b.down);
  return x + h;
}
inline Array loss(const Model& m, Array x, Array y) {
  for (const Block& b : m) x = apply(b, x);
  const Array d = x - y;
  return rp::mean(rp::square(d));
}
template <class Tree>
Tree descend(const Tree& params, const Tree& grads) {
  return rp::tree_map([](const Array& p, const Array& g) { return p - rate * g; }, params, grads);
}

// The losses of all steps in this process alone.
inline std::vector<double> alone(Model m) {
  const auto step = rp::jit([](Model now, Array x, Array y) {
    const auto [value, grads] = rp::value_and_grad(loss)(now, x, y);
    return std::pair(descend(now, grads), value);
  });
  std::vector<double> losses;
  const Array x = inputs(), y = targets();
  for (int i = 0; i < steps; ++i) {
    auto [next, value] = step(m, x, y);
    m = next;
    losses.push_back(value.item<double>());
  }
  return losses;
}

// Ends the program with an error if the losses are not those of one process.
inline void compare(const char* what, const std::vector<double>& losses,
                    const std::vector<double>& wanted, double tolerance = 1e-5) {
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    worst = std::max(worst, std::abs(losses[i] - wanted[i]) / wanted[i]);
  if (rp::dist::rank() == 0) {
    std::printf("%s on %d ranks: loss %.4f to %.4f, as in one process: %s\n", what,
                static_cast<int>(rp::dist::size()), losses.front(), losses.back(),
                worst <= tolerance ? "yes" : "no");
  }
  if (worst > tolerance) {
    std::fprintf(stderr, "%s: rank %d is off by %g\n", what, static_cast<int>(rp::dist::rank()),
                 worst);
    std::exit(1);
  }
}

// Ends the program with an error if a value that is the same on all ranks differs in a bit.
template <class Tree>
void check_same_bits(const Tree& tree, const rp::Mesh& mesh) {
  const auto names = mesh.axis_names();
  for (const Array& a : rp::tree_leaves(tree)) {
    const auto spread = rp::shard_map(
        [names](Array x) {
          const Array high = rp::lax::pmax(x, names), low = rp::lax::pmin(x, names);
          return rp::sum(rp::abs(high - low));
        },
        mesh, P(), P());
    const Array difference = spread(a);
    if (difference.item<double>() == 0) continue;
    std::fprintf(stderr, "rank %d: a weight differs\n", static_cast<int>(rp::dist::rank()));
    std::exit(1);
  }
}

}  // namespace task
