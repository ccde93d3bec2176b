// Time to trace and compile, by the shape of the program and its size.
//   bench/compile_time [shape ...]            seconds per shape and size, for all sizes
//   bench/compile_time --passes [shape ...]   and of every pass
//
// `trace` is everything until the program stands (gradients and maps included), `compile` all that
// is behind it. Time per equation must not grow with the size: the last column says by which power
// it does.
#include "program_shapes.h"
#include "runtime/compile.h"
#include "runtime/passes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace rp = reprise;
using rp::Arrays;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Equations of the program and of those inside it.
std::size_t equations(const rp::Program& p) {
  std::size_t n = p.eqns.size();
  for (const rp::Equation& e : p.eqns) {
    rp::for_each_program(e.params, [&](const rp::ProgramPtr& body) { n += equations(*body); });
  }
  return n;
}

void measure(const rp::shapes::ProgramShape& shape, bool with_passes) {
  double before = 0;
  int size_before = 0;
  for (int n : shape.sizes) {
    const auto begin = std::chrono::steady_clock::now();
    const auto traced =
        rp::trace([&](const Arrays& x) { return shape.function(x, n); }, shape.arguments(n));
    const double trace = seconds_since(begin);
    const rp::PassTimes passes;
    const auto middle = std::chrono::steady_clock::now();
    rp::compile(*traced.program);
    const double compile = seconds_since(middle);
    const double all = trace + compile;
    std::printf("%-20s %8d %9zu %9.3f %9.3f", shape.name, n, equations(*traced.program), trace,
                compile);
    if (size_before > 0)
      std::printf("   n^%.1f", std::log(all / before) / std::log(double(n) / size_before));
    std::printf("\n");
    if (with_passes) {
      for (const auto& [name, seconds] : passes.all())
        std::printf("    %-24s %9.3f\n", name.c_str(), seconds);
    }
    std::fflush(stdout);
    before = all;
    size_before = n;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool with_passes = false;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--passes") == 0)
      with_passes = true;
    else
      wanted.emplace_back(argv[i]);
  }
  std::printf("%-20s %8s %9s %9s %9s\n", "shape", "n", "equations", "trace s", "compile s");
  for (const auto& shape : rp::shapes::all()) {
    const bool chosen =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), shape.name) != wanted.end();
    if (chosen) measure(shape, with_passes);
  }
}
