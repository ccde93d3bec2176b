// Memory that ends while code is made is an error of ours, wherever it ends.
#include "sanitized.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <new>

namespace rp = reprise;
using rp::Array;

namespace {

enum Ending { compiled = 10, error = 11, other_error = 12 };

// Compiles a program of several kernels, with so much memory more than the process has.
[[noreturn]] void compile_with(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limits{limit, limit};
  setrlimit(RLIMIT_AS, &limits);
  int ending = compiled;
  try {
    const auto f = rp::jit([](Array x) {
      for (int i = 0; i < 100; ++i) x = rp::sum(rp::exp(rp::sin(x) * i), 0, true) + x;
      return x;
    });
    f.lower(rp::ones({8, 8})).compile();
  } catch (const rp::RuntimeError& e) {
    ending = std::string(e.what()).find("memory") != std::string::npos ? error : other_error;
  } catch (const std::bad_alloc&) {
    ending = error;  // before anything was compiled
  } catch (...) {
    ending = other_error;
  }
  _exit(ending);
}

int ending_with(std::size_t more) {
  const pid_t child = fork();
  if (child == 0) compile_with(more);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("memory that ends while compiling is an error, not the end of the process") {
  if (is_sanitized) {
    MESSAGE("left out: sanitizers reserve terabytes of addresses");
    return;
  }
  rp::jit([](Array x) { return x + 1.0; })(rp::ones({3}));  // the compiler itself is there
  int errors = 0, successes = 0;
  for (std::size_t kib = 64; kib <= 64 << 10; kib = kib * 3 / 2) {
    INFO("with ", kib, " KiB");
    const int ending = ending_with(kib << 10);
    CHECK((ending == error || ending == compiled));
    errors += ending == error ? 1 : 0;
    successes += ending == compiled ? 1 : 0;
  }
  CHECK(errors > 0);
  CHECK(successes > 0);
}
