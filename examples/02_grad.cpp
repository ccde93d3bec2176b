// 2. Derivatives: grad, value_and_grad, vjp and jvp take a function and return a function.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;

// Parameters can be any tree: a struct of arrays, a vector, a tuple, a Dict.
struct Params {
  Array W, b;
};

Array predict(Params p, Array x) { return rp::tanh(rp::dot(p.W, x) + p.b); }

Array loss(Params p, Array x, Array y) {
  Array difference = predict(p, x) - y;
  return rp::sum(rp::square(difference));
}

int main() {
  // The derivative of a function of one number, and of its derivative.
  auto f = [](Array x) { return x * x * x; };
  std::cout << "f'(2)  = " << rp::grad(f)(2.0) << "\n";
  std::cout << "f''(2) = " << rp::grad(rp::grad(f))(2.0) << "\n\n";

  // Gradients have the structure of the argument: here, a Params.
  Params p{rp::ones({2, 3}) * 0.1, rp::zeros({2})};
  Array x = rp::array({1.0, 2.0, 3.0}), y = rp::array({0.0, 1.0});
  auto [value, grads] = rp::value_and_grad(loss)(p, x, y);
  std::cout << "loss " << value << "\ndW\n" << grads.W << "\ndb " << grads.b << "\n\n";

  // With respect to more than one argument: name their positions.
  auto [dp, dx] = rp::grad<0, 1>(loss)(p, x, y);
  std::cout << "dx " << dx << "\n\n";

  // Reverse mode by hand: vjp runs the function and returns its backward pass. What lies between
  // the two, the residuals, is memory that lives from the forward to the backward pass. The rest of
  // this path is about that memory.
  auto [z, backward] = rp::vjp(predict, p, x);
  auto [p_bar, x_bar] = backward(rp::ones({2}));
  std::cout << "kept for the backward pass:";
  for (const rp::Residual& r : backward.residuals()) std::cout << " " << r.type;
  std::cout << "\n";

  // Forward mode, a whole Jacobian, and a batch, compiled.
  auto [out, out_dot] = rp::jvp(rp::sin, std::tuple(Array(0.5)), std::tuple(Array(1.0)));
  std::cout << "sin, and its slope: " << out << " " << out_dot << "\n";
  auto squares = [](Array v) { return v * v; };
  std::cout << "jacobian\n" << rp::jacrev(squares)(x) << "\n";
  auto slopes = rp::jit(rp::vmap(rp::grad(f)));
  std::cout << "f' at each: " << slopes(x) << "\n";
}
