// The first minute with Reprise: arrays, a function, its program, its gradient.
#include <iostream>

#include <reprise/reprise.h>

namespace rp = reprise;
using rp::Array;

Array g(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
Array f(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = g(W2, x);
  x = g(W3, x);
  return x;
}

int main() {
  Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), W3 = rp::ones({7, 6}), x = rp::ones({4});

  std::cout << "The program of f, as JAX prints it:\n" << rp::make_jaxpr(f)(W1, W2, W3, x) << "\n\n";

  auto loss = [](Array w1, Array w2, Array w3, Array v) { return rp::sum(f(w1, w2, w3, v)); };
  auto [value, grads] = rp::value_and_grad<0, 1, 2>(loss)(W1, W2, W3, x);
  std::cout << "loss = " << value << "\n";
  std::cout << "d loss / d W1 =\n" << std::get<0>(grads) << "\n\n";

  auto [y, backward] = rp::vjp(f, W1, W2, W3, x);
  std::size_t bytes = 0;
  std::cout << "Kept from the forward pass for the backward pass:\n";
  for (const rp::Residual& r : backward.residuals()) {
    std::cout << "  " << r.type << "\n";
    bytes += r.type.nbytes();
  }
  std::cout << "  " << bytes << " bytes in all\n";
}
