#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;

int main() {
  auto f = [](rp::Array x) { return rp::sum(rp::sin(x)); };
  std::cout << rp::grad(f)(rp::ones({3})) << "\n";
}
