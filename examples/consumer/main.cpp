// A small net learns sin(3x). Its hidden layer is computed again in the backward pass instead of
// being kept, and the step that trains it is compiled: its memory is known before it runs.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;

// Any struct of arrays can be an argument: its gradient is a struct of the same kind.
struct Params {
  Array w1, b1, w2;
};

Array hidden(Params p, Array x) { return rp::tanh(rp::dot(x, p.w1) + p.b1); }

Array loss(Params p, Array x, Array y) {
  auto layer = rp::checkpoint(hidden);
  return rp::mean(rp::square(rp::dot(layer(p, x), p.w2) - y));
}

Params step(Params p, Array x, Array y) {
  const Params g = rp::grad(loss)(p, x, y);
  return {p.w1 - 0.1 * g.w1, p.b1 - 0.1 * g.b1, p.w2 - 0.1 * g.w2};
}

int main() {
  const Array key = rp::random::key(0);
  const Array x = rp::reshape(rp::linspace(-1.0, 1.0, 64), {64, 1});
  const Array y = rp::sin(3.0 * x);
  Params p{rp::random::normal(key, {1, 32}), rp::zeros({32}), rp::zeros({32, 1})};

  const auto train = rp::jit(step);
  std::cout << "one step needs " << train.lower(p, x, y).compile().memory_analysis().peak_bytes
            << " bytes beyond its arguments\n";

  const float before = loss(p, x, y).item<float>();
  for (int i = 0; i < 500; ++i) p = train(p, x, y);
  const float after = loss(p, x, y).item<float>();
  std::cout << "loss " << before << " before, " << after << " after 500 steps\n";
  return after < 0.1F * before ? 0 : 1;
}
