// 6. Recursive checkpoints: halves within halves. For a chain of n functions memory grows as log n
// instead of n, and the work as n log n.
#include <reprise/reprise.h>

#include <functional>
#include <iomanip>
#include <iostream>
#include <vector>

namespace rp = reprise;
using rp::Array;
using Function = std::function<Array(Array)>;
using Functions = std::vector<Function>;

Function chain(Functions functions) {
  return [functions](Array x) {
    for (const Function& f : functions) x = f(x);
    return x;
  };
}

// The first half keeps its input only, and so does the first half of each half.
Function recursive_checkpoint(Functions functions) {
  if (functions.size() <= 2) return chain(functions);
  auto middle = functions.begin() + static_cast<std::ptrdiff_t>(functions.size() / 2);
  auto first = rp::checkpoint(recursive_checkpoint(Functions(functions.begin(), middle)));
  auto second = recursive_checkpoint(Functions(middle, functions.end()));
  return [first, second](Array x) {
    Array y = first(x);
    return second(y);
  };
}

Array sine(Array x) { return rp::sin(x); }

int main() {
  Array x = rp::ones({1000});
  auto total = [](Function f) { return [f](Array v) { return rp::sum(f(v)); }; };
  // Uncompiled evaluation drops every value after its last reader, so memory can be watched.
  auto most_arrays = [&](auto f) {
    std::size_t before = rp::live_bytes();
    rp::reset_peak_live_bytes();
    f(x);
    return (rp::peak_live_bytes() - before) / x.nbytes();
  };
  auto sines = [&](auto f) {
    std::string program = rp::make_jaxpr(rp::grad(f))(x).str();
    std::size_t count = 0;
    for (auto at = program.find("= sin"); at != program.npos; at = program.find("= sin", at + 1))
      ++count;
    return count;
  };

  std::cout << "  length    arrays kept     most alive     sines computed\n";
  for (std::size_t n : {8, 16, 32, 64, 128}) {
    auto plain = total(chain(Functions(n, sine)));
    auto halved = total(recursive_checkpoint(Functions(n, sine)));
    std::cout << std::setw(8) << n << std::setw(8) << rp::saved_residuals(plain, x).size() << " ->"
              << std::setw(3) << rp::saved_residuals(halved, x).size() << std::setw(10)
              << most_arrays(rp::grad(plain)) << " ->" << std::setw(3)
              << most_arrays(rp::grad(halved)) << std::setw(10) << sines(plain) << " ->"
              << std::setw(4) << sines(halved) << "\n";
  }
}
