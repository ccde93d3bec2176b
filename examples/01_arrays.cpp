// 1. Arrays: values of one element type and a shape, with the names and rules of jax.numpy.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;

Array softmax(Array x) {
  Array e = rp::exp(x);
  return e / rp::sum(e);
}

int main() {
  // From numbers, or filled. C++ doubles become f32, as in JAX.
  Array x = rp::array({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  Array ones = rp::ones({3});
  std::cout << x.type() << "\n" << x << "\n";

  // Shapes broadcast; an integer array and a float array give a float array.
  Array counts = rp::array({1, 2, 3});
  std::cout << (x + counts).type() << " from " << x.type() << " and " << counts.type() << "\n";
  std::cout << "row sums    " << rp::sum(x, 1) << "\n";
  std::cout << "x . ones    " << rp::dot(x, ones) << "\n";

  // Indexing reads like numpy. An array never changes: set gives a new one.
  std::cout << "x[0]        " << x[0] << "\n";
  std::cout << "x[:, 1:]    " << rp::ravel(x(rp::all, rp::slice(1, std::nullopt))) << "\n";
  Array y = x.at(0, 0).set(100.0);
  std::cout << "set         " << y(0, 0) << ", and x keeps its " << x(0, 0) << "\n";

  // Back to C++: one element with item, all of them with to_vector.
  float first = x(0, 0).item<float>();
  std::vector<float> all = x.to_vector<float>();
  std::cout << "in C++      " << first << ", and " << all.size() << " elements\n";

  // Random numbers are functions of a key, and have the bits of jax.random.
  Array key = rp::random::key(0);
  std::cout << "normal      " << rp::random::normal(key, {3}) << "\n";

  // A function of arrays runs as it stands, or can be traced: the program prints as JAX prints it.
  // All that follows on this path is done to such programs.
  std::cout << rp::make_jaxpr(softmax)(ones) << "\n";

  // Mistakes are answered with the rule, the facts and the line.
  try {
    rp::dot(x, x);
  } catch (const rp::TypeError& e) {
    std::cout << e.what() << "\n";
  }
}
