// What dies is given back: code, entries and blocks, counted.
#include "codegen/machine_code.h"
#include "runtime/eager.h"
#include "sanitized.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace rp = reprise;
using rp::Array;

namespace {

std::size_t modules() { return rp::codegen::loaded_code().modules; }

// A kernel that no other number has.
auto scaled_by(double c) {
  return rp::jit([c](Array x) { return rp::sin(x) * c; });
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("elements that die go back to the system, also from between others" *
          doctest::skip(is_sanitized)) {
  rp::release_free_memory();
  const std::size_t before = resident_bytes();
  rp::Arrays small;
  for (int i = 0; i < 100; ++i) {
    rp::ones({(1 << 20) - 8192 * i});
    small.push_back(rp::ones({1000}));
  }
  rp::release_free_memory();
  CHECK(rp::live_bytes() >= 100 * 4000);
  CHECK(resident_bytes() <= before + (16u << 20));
}

TEST_CASE("compiled code goes with the last who can run it") {
  const Array x = rp::ones({1000});
  rp::release_free_memory();
  const std::size_t before = modules();
  {
    const auto f = scaled_by(2);
    f(x);
    CHECK(modules() == before + 1);
    rp::release_free_memory();
    CHECK(modules() == before + 1);
    CHECK(f(x).to_vector<float>()[0] == doctest::Approx(2 * std::sin(1.0)));
    const auto g = scaled_by(2);  // the same kernel
    g(x);
    CHECK(modules() == before + 1);
  }
  rp::release_free_memory();
  CHECK(modules() == before);
  CHECK(scaled_by(2)(x).to_vector<float>()[0] == doctest::Approx(2 * std::sin(1.0)));
}

TEST_CASE("code of functions that are made again and again is kept for a while and is bounded") {
  const Array x = rp::ones({1000});
  rp::release_free_memory();
  const std::size_t before = modules();
  for (int i = 0; i < 3; ++i) scaled_by(3)(x);
  CHECK(modules() == before + 1);
  // Long kernels, so that the limit of 16 MiB is met soon.
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    rp::jit([i](Array y) {
      for (int k = 0; k < 60; ++k) y = rp::sin(rp::tanh(y) * (i + 0.5) + k);
      return y;
    })(x);
    most = std::max(most, rp::codegen::loaded_code().bytes);
  }
  CHECK(most <= 18u << 20);
  rp::release_free_memory();
  CHECK(modules() == before);
}

TEST_CASE("code of single operations is bounded over many shapes") {
  for (int i = 0; i < 300; ++i) rp::ones({(1 << 17) + i}) + rp::ones({(1 << 17) + i});
  CHECK(rp::eager_code_count() <= 256);
  CHECK(rp::eager_code_count() > 200);
  rp::release_free_memory();
  CHECK(rp::eager_code_count() == 0);
}
