// Cost of tracing and transforming: microseconds per equation, and how it grows with the program.
//   bench/tracing            prints one row per program size
#include "program/print.h"
#include "program/trace.h"
#include "reprise/reprise.h"
#include "transform/cse.h"
#include "transform/dce.h"
#include "transform/jvp.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <chrono>
#include <cstdio>

namespace rp = reprise;
using rp::Array;

namespace {

// n equations: sin and mul alternating.
rp::Arrays chain(const rp::Arrays& x, int n) {
  Array y = x[0];
  for (int i = 0; i < n; i += 2) {
    Array s = rp::sin(y);
    y = s * x[0];
  }
  return {y};
}

template <class F>
double microseconds(const F& f) {
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

void row(int n) {
  const rp::Types in{rp::Type{rp::float32, {4}}};
  const auto f = [n](const rp::Arrays& x) { return chain(x, n); };
  rp::Traced traced = rp::trace(f, in);
  const rp::Program& p = *traced.program;
  const double trace = microseconds([&] { rp::trace(f, in); });
  // A fresh copy each time: derived programs are kept with their program.
  const double jvp = microseconds([&] { rp::jvp_program(rp::Program(p), {true}); });
  const double linearize =
      microseconds([&] { rp::linearize_program(rp::Program(p), {true}, {}, {true}); });
  const auto lin = rp::linearize_program(p, {true}, {}, {true});
  std::vector<bool> is_linear(lin->linear->in.size());
  is_linear.back() = true;
  const double transpose =
      microseconds([&] { rp::transposed_program(rp::Program(*lin->linear), is_linear, {true}); });
  const double vmap =
      microseconds([&] { rp::batched_program(rp::Program(p), {0}, 3, rp::OutAxes::natural); });
  const double dce = microseconds([&] { rp::dce(p, {true}); });
  const double cse = microseconds([&] { rp::cse(p); });
  const double print = microseconds([&] { rp::to_text(p); });
  const double eager = microseconds([&] { rp::eval(p, {rp::ones({4})}); });
  std::printf("%8d %8.2f %8.2f %10.2f %10.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", n, trace / n,
              jvp / n, linearize / n, transpose / n, vmap / n, dce / n, cse / n, print / n,
              eager / n);
}

}  // namespace

int main() {
  std::printf("microseconds per equation of the program\n");
  std::printf("%8s %8s %8s %10s %10s %8s %8s %8s %8s %8s\n", "n", "trace", "jvp", "linearize",
              "transpose", "vmap", "dce", "cse", "print", "eval");
  for (int n : {100, 1000, 10000, 100000}) row(n);
}
