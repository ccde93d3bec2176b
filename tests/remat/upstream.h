// What the ports of JAX's own tests share: counting words in programs, derivatives against
// differences.
#pragma once

#include "derivatives.h"
#include "error_text.h"

#include <array>

namespace upstream {

using namespace check;
namespace P = rp::checkpoint_policies;

inline std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}
inline bool contains(const std::string& text, const std::string& word) {
  return count(text, word) > 0;
}

// How often ' sin ' and ' cos ' stand in a text.
using SinCos = std::array<std::size_t, 2>;
inline SinCos sin_cos(const std::string& text) {
  return {count(text, " sin "), count(text, " cos ")};
}

inline rp::Policy save_prim(const std::string& name) {
  return [name](const rp::EquationInfo& e) { return e.primitive == name; };
}
inline rp::Policy save_never() {
  return [](const rp::EquationInfo&) { return false; };
}
// The variants that JAX runs most of its tests with.
inline std::vector<rp::CheckpointOptions> variants() { return {{}, {.policy = save_never()}}; }

// The linear program of f at x.
template <class F, class... A>
std::string linear_text(const F& f, const A&... x) {
  return rp::linearize(f, x...).second.jaxpr().str();
}

// First and second derivatives against central differences, forward mode too unless it is left out.
template <class F>
void check_grads(const F& f, Array x, bool forward = true) {
  x = x.astype(rp::float64);
  auto total = [&f](Array v) {
    Array sum = rp::zeros({}, rp::float64);
    for (const Array& leaf : rp::tree_leaves(f(v))) sum = sum + rp::sum(leaf);
    return sum;
  };
  const Array direction = (rp::arange(x.size(), rp::float64) * 0.25 + 0.5).reshape(x.shape());
  auto slope = [&](Array v) { return rp::sum(rp::grad(total)(v) * direction); };
  check_close(rp::grad(total)(x), numeric_grad(total, x));
  check_close(rp::grad(slope)(x), numeric_grad(slope, x));
  if (forward) {
    const Array along = rp::jvp(total, std::tuple{x}, std::tuple{direction}).second;
    check_close(along, rp::sum(numeric_grad(total, x) * direction));
    const Array twice = rp::jvp(slope, std::tuple{x}, std::tuple{direction}).second;
    check_close(twice, rp::sum(numeric_grad(slope, x) * direction));
  }
}

}  // namespace upstream
