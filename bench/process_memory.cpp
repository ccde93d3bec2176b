// What the process holds after work that is over, seen from outside: resident memory before and
// after many shapes of eager products and many jit functions, and once more after
// release_free_memory().
//   bench/process_memory [shapes] [jits]     10000 of each by default
#include "codegen/machine_code.h"
#include "reprise/reprise.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace rp = reprise;
using rp::Array;

namespace {

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS", 0) == 0)
      return std::stod(line.substr(line.find_first_of("0123456789"))) / 1024;
  }
  return 0;
}
std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(maps, line);) ++n;
  return n;
}

void print(const char* what) {
  const auto code = rp::codegen::loaded_code();
  std::printf(
      "%-34s %8.1f MiB resident, %5zu mappings, %5zu modules of code (%.1f MiB), live_bytes %zu\n",
      what, resident_mib(), mappings(), code.modules, static_cast<double>(code.bytes) / (1 << 20),
      rp::live_bytes());
  std::fflush(stdout);
}

void eager_products(int shapes) {
  for (int i = 0; i < shapes; ++i) {
    const Array x = rp::ones({128 + i % 100, 100 + i / 100}), y = rp::ones({100 + i / 100, 200});
    rp::matmul(x, y);
  }
}
void eager_sums(int shapes) {
  for (int i = 0; i < shapes; ++i) {
    const Array x = rp::ones({(1 << 17) + 16 * i});
    rp::sin(x);
  }
}
void jits(int count) {
  const Array x = rp::ones({1000});
  for (int i = 0; i < count; ++i) rp::jit([i](Array v) { return rp::sin(v) * (i + 0.5); })(x);
}
void shapes_of_one_jit(int count) {
  const auto f = rp::jit([](Array v) { return rp::sum(rp::sin(v)); });
  for (int i = 0; i < count; ++i) f(rp::ones({1000 + i}));
}

}  // namespace

int main(int argc, char** argv) {
  const int shapes = argc > 1 ? std::atoi(argv[1]) : 10000;
  const int functions = argc > 2 ? std::atoi(argv[2]) : 10000;
  eager_products(1);
  jits(1);
  print("at the start");
  eager_products(shapes);
  print("after shapes of eager products");
  eager_sums(shapes);
  print("after shapes of eager sines");
  jits(functions);
  print("after jits made and destroyed");
  shapes_of_one_jit(functions);
  print("after shapes of one jit, destroyed");
  rp::release_free_memory();
  print("after release_free_memory()");
}
