// Programs end in many ways: what the library needs is there until the very end.
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace rp = reprise;
using rp::Array;

namespace {

// Traces, differentiates, compiles and runs, with products and convolutions by the library, for a
// shape that nobody has had before.
bool computes() {
  static std::atomic<std::int64_t> rows{64};
  const std::int64_t n = 64 + rows++ % 64;
  const auto loss = rp::checkpoint([](Array x, Array w, Array image, Array kernel) {
    const Array y = rp::lax::conv_general_dilated(image, kernel, {.padding = {{1, 1}, {1, 1}}});
    return rp::sum(rp::tanh(rp::matmul(x, w)) * 0) + rp::sum(x * x) + rp::sum(y);
  });
  const Array x = rp::ones({n, 256}), w = rp::ones({256, 256});
  const Array image = rp::ones({4, 32, 16, 16}), kernel = rp::ones({32, 32, 3, 3});
  const Array compiled = rp::jit(rp::grad(loss))(x, w, image, kernel);
  const Array eager = rp::sum(rp::matmul(x, w) + rp::sin(x * 0));
  return rp::sum(compiled).item<float>() == static_cast<float>(2 * n * 256) &&
         eager.item<float>() == static_cast<float>(n * 256 * 256);
}

std::atomic<bool> is_child = false;
void compute_at_exit() {
  if (is_child && !computes()) _exit(3);
}
// Whoever asks for code itself is told.
void compile_at_exit() {
  if (!is_child) return;
  try {
    rp::jit([](Array x) { return rp::sin(x) * 7; }).lower(rp::ones({77})).compile();
  } catch (const rp::RuntimeError& e) {
    if (std::string(e.what()).find("nothing is compiled any more") != std::string::npos) return;
  }
  _exit(6);
}
// Before main, so that its destructor runs after those of all that was first used later.
const struct StaticObject {
  ~StaticObject() {
    compute_at_exit();
    compile_at_exit();
  }
} static_object;

enum class Way { at_once, after_use, with_threads, at_first_use };

int exit_code_of_child(Way way) {
  const char* const name = way == Way::at_once     ? "child: ends at once"
                           : way == Way::after_use ? "child: ends after use"
                           : way == Way::with_threads
                               ? "child: ends while threads run"
                               : "child: ends while the first products are made";
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    const std::string filter = std::string("--test-case=") + name;
    execl("/proc/self/exe", "test", "--no-skip", filter.c_str(), nullptr);
    _exit(4);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("child: ends at once" * doctest::skip()) {
  is_child = true;
  std::atexit(compute_at_exit);
}
TEST_CASE("child: ends after use" * doctest::skip()) {
  std::atexit(compute_at_exit);
  CHECK(computes());
  is_child = true;
}
TEST_CASE("child: ends while threads run" * doctest::skip()) {
  static std::atomic<int> at_work{0};
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (;;) {
        if (!computes()) _exit(5);
        ++at_work;
      }
    }).detach();
  }
  while (at_work < 2) std::this_thread::yield();
}

TEST_CASE("child: ends while the first products are made" * doctest::skip()) {
  static std::atomic<int> begun{0};
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (++begun;;) {
        if (!computes()) _exit(5);
      }
    }).detach();
  }
  while (begun < 3) std::this_thread::yield();
}

TEST_CASE("static destructors and atexit may trace, compile and compute") {
  for (int run = 0; run < 3; ++run) {
    CHECK(exit_code_of_child(Way::at_once) == 0);
    CHECK(exit_code_of_child(Way::after_use) == 0);
  }
}

TEST_CASE("threads may go on while the process ends") {
  for (int run = 0; run < 20; ++run) {
    CHECK(exit_code_of_child(Way::with_threads) == 0);
    CHECK(exit_code_of_child(Way::at_first_use) == 0);
  }
}
