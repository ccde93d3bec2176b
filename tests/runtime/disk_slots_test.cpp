// Loops with checkpoints on disk: gradients with the bits they have without, whatever part is on
// disk; what the plan says; and what happens when the file fails, injected through its descriptor.
#include "runtime/disk_slots.h"

#include "derivatives.h"
#include "error_text.h"
#include "runtime/compile.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace {

using namespace check;
namespace fs = std::filesystem;

// A directory that is gone at the end of the test.
struct Directory {
  fs::path path;
  Directory() {
    std::string name = fs::temp_directory_path() / "reprise_loop_test_XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
};
std::vector<int> open_files_in(const fs::path& directory) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone);
    if (!gone && target.starts_with(directory.string() + "/"))
      found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

using Pair = std::tuple<Array, Array>;

Array known(const Array& w, const Array& h, int n, rp::LoopOptions o) {
  auto step = [=](Array i, Pair c) {
    auto [u, v] = c;
    Array next = rp::sin(u * w) + 0.01 * i.astype(rp::float32);
    Array speed = v + rp::cos(u) * 0.1;
    return Pair{next, speed};
  };
  auto [u, v] = rp::fori_loop(0, n, step, Pair{h, rp::zeros_like(h)}, o);
  return rp::sum(u * v);
}
Array unknown(const Array& w, const Array& h, int n, rp::LoopOptions o) {
  auto step = [=](Array i, Pair c) {
    auto [u, v] = c;
    Array next = rp::sin(u * w) + 0.01 * i.astype(rp::float32);
    Array speed = v + rp::cos(u) * 0.1;
    return Pair{next, speed};
  };
  auto [u, v] = rp::fori_loop(Array(0), Array(n), step, Pair{h, rp::zeros_like(h)}, o);
  return rp::sum(u * v);
}
using Loop = Array (*)(const Array&, const Array&, int, rp::LoopOptions);

const Array& weights() {
  static const Array w = rp::array(std::vector<float>{0.3f, 0.9f, 0.5f, 0.7f, 0.2f});
  return w;
}
const Array& start() {
  static const Array h = rp::array(std::vector<float>{0.1f, 0.6f, 0.8f, 0.4f, 0.9f});
  return h;
}
// With as many of these checkpoints as there are steps, at most.
auto gradient(Loop loop, int n, rp::LoopOptions o) {
  if (o.checkpoints)
    o.checkpoints = std::min(*o.checkpoints->count(), std::max<std::int64_t>(n, 1));
  return rp::grad([=](Array w) { return loop(w, start(), n, o); });
}
std::vector<float> values(const Array& a) { return a.to_vector<float>(); }

constexpr int steps = 40;
Array loss_on_disk(Array w) {
  return known(w, rp::ones({256}), steps, {.checkpoints = 2, .disk_checkpoints = 6});
}
std::shared_ptr<const rp::Executable> compiled(const std::string& directory) {
  const auto traced = rp::make_jaxpr(rp::grad(loss_on_disk))(rp::ones({256}));
  return rp::compile(*traced.program(), {.spill_directory = directory});
}

// Runs with a disturbance between the forward loop and its reversal.
template <class Disturbance>
std::string error_of(const rp::Executable& executable, const fs::path& directory,
                     const Disturbance& disturb) {
  const auto& instructions = executable.code().instructions;
  const rp::Observer observer = [&](std::size_t i, std::byte* const*) {
    if (!std::holds_alternative<rp::RunForward>(instructions[i])) return;
    disturb(open_files_in(directory).at(0));
  };
  try {
    executable.run({rp::ones({256})}, &observer);
  } catch (const rp::RuntimeError& e) {
    return e.what();
  }
  return "";
}
void check_state(const rp::Executable& executable, const Directory& directory,
                 std::size_t live_before) {
  CHECK(rp::live_bytes() == live_before);
  CHECK(open_files_in(directory.path).empty());
  CHECK(fs::is_empty(directory.path));
  CHECK(values(executable.run({rp::ones({256})})[0]) ==
        values(rp::jit(rp::grad(loss_on_disk))(rp::ones({256}))));
}

}  // namespace

TEST_CASE("gradients have the same bits whatever part of the checkpoints is on disk") {
  const Directory directory;
  for (const Loop loop : {known, unknown}) {
    for (const int n : {0, 1, 2, 3, 9, 50}) {
      const std::vector<float> eager = values(gradient(loop, n, {.checkpoints = 4})(weights()));
      const std::vector<float> code =
          values(rp::jit(gradient(loop, n, {.checkpoints = 4}))(weights()));
      for (const auto& both : {std::pair{1, 1}, {1, 5}, {2, 1}, {3, 3}, {2, 100}}) {
        const int c = both.first, d = both.second;
        INFO(n << " steps, " << c << " checkpoints and " << d << " on disk");
        const auto g = gradient(loop, n, {.checkpoints = c, .disk_checkpoints = d});
        CHECK(values(g(weights())) == eager);
        CHECK(values(rp::jit(g)(weights())) == code);
        CHECK(values(rp::jit(g, {.spill_directory = directory.path})(weights())) == code);
      }
    }
  }
  CHECK(fs::is_empty(directory.path));
}

TEST_CASE("with other transforms: mapped, nested, checkpointed, forward over reverse") {
  const Directory directory;
  const rp::LoopOptions plain{}, disk{.checkpoints = 2, .disk_checkpoints = 2};
  const auto in = [&](const auto& f) { return rp::jit(f, {.spill_directory = directory.path}); };
  const Array ws = rp::random::uniform(rp::random::key(5), {3, 5});
  check_close(in(rp::vmap(gradient(known, 9, disk)))(ws), rp::vmap(gradient(known, 9, plain))(ws));
  auto nested = [](rp::LoopOptions o) {
    return rp::grad([=](Array w) {
      auto outer = [=](Array, Array h) { return h * 0.9 + rp::sin(known(w, h, 6, o)); };
      return rp::sum(rp::fori_loop(0, 7, outer, start(), o));
    });
  };
  check_close(in(nested(disk))(weights()), nested(plain)(weights()));
  auto stacked = [](rp::LoopOptions inner) {  // the outer loop stacks up what the inner ones keep
    return rp::grad([=](Array w) {
      auto outer = [=](Array, Array h) { return h * 0.9 + rp::sin(known(w, h, 6, inner)); };
      return rp::sum(rp::fori_loop(0, 7, outer, start()));
    });
  };
  check_close(in(stacked(disk))(weights()), stacked(plain)(weights()));
  auto again = [](rp::LoopOptions o) {
    return rp::grad(rp::checkpoint([=](Array w) { return rp::sin(known(w, start(), 9, o)); }));
  };
  check_close(in(again(disk))(weights()), again(plain)(weights()));
  check_close(in(rp::jacfwd(gradient(known, 9, disk)))(weights()),
              rp::jacfwd(gradient(known, 9, plain))(weights()));
  check_close(in(rp::jacfwd(gradient(unknown, 9, disk)))(weights()),
              rp::jacfwd(gradient(known, 9, plain))(weights()));
  const auto [y, pull] = rp::vjp([=](Array w) { return known(w, start(), 9, disk); }, weights());
  check_close(std::get<0>(pull(Array(1.0f))), gradient(known, 9, plain)(weights()));
}

TEST_CASE("memory on disk is planned, and is none of the peak") {
  const Directory directory;
  const auto memory = [&](int d, const std::string& where) {
    auto f = [=](Array w) {
      return known(w, rp::ones({4096}), 500, {.checkpoints = 2, .disk_checkpoints = d});
    };
    return rp::jit(rp::grad(f), {.spill_directory = where})
        .lower(rp::ones({4096}))
        .compile()
        .memory_analysis();
  };
  const auto few = memory(10, directory.path), many = memory(100, directory.path),
             inside = memory(100, "");
  CHECK(few.peak_bytes == many.peak_bytes);
  constexpr std::size_t state = 2 * 4096 * 4 + 64;  // and the loop's own count
  CHECK(many.host_temp_bytes >= 100 * (state - 64));
  // the reversal works where the forward pass has written
  CHECK(many.host_temp_bytes <= 100 * state);
  CHECK(many.host_on_disk);
  CHECK(inside.peak_bytes >= many.peak_bytes + 100 * (state - 64));
}

TEST_CASE("a file that fails is an error, and nothing of it is left") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  const std::string changed = error_of(*executable, directory.path, [](int file) {
    for (off_t i = 0; i < 1000; i += 100) {
      char c = 0;
      REQUIRE(::pread(file, &c, 1, i) == 1);
      c = static_cast<char>(c ^ 4);
      REQUIRE(::pwrite(file, &c, 1, i) == 1);
    }
  });
  CHECK_MENTIONS(changed, "gave back other bytes than were written");
  check_state(*executable, directory, before);
  CHECK_MENTIONS(
      error_of(*executable, directory.path, [](int file) { REQUIRE(::ftruncate(file, 10) == 0); }),
      "ended early");
  check_state(*executable, directory, before);
  // The reversal writes, too: its disk is full from the beginning of it.
  const std::string full = error_of(*executable, directory.path, [](int file) {
    const int other = ::open("/dev/full", O_RDWR | O_CLOEXEC);
    REQUIRE(::dup2(other, file) == file);
    ::close(other);
  });
  CHECK(full != "");
  check_state(*executable, directory, before);
}

TEST_CASE("a full disk shows before anything runs") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit low = old;
  low.rlim_cur = 100;
  ::setrlimit(RLIMIT_FSIZE, &low);
  int run = 0;
  const rp::Observer count = [&](std::size_t, std::byte* const*) { ++run; };
  const std::string text =
      message<rp::RuntimeError>([&] { executable->run({rp::ones({256})}, &count); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  CHECK_MENTIONS(text, "got a limit of 100 bytes for files of this process");
  CHECK(run == 0);
  check_state(*executable, directory, before);
}

TEST_CASE("numbers of checkpoints on disk that are none") {
  const auto loop = [](rp::LoopOptions o) { return [=] { known(weights(), start(), 4, o); }; };
  CHECK_MENTIONS(message<rp::TypeError>(loop({.checkpoints = 2, .disk_checkpoints = -1})),
                 "scan: .disk_checkpoints must not be negative, got -1");
  CHECK_MENTIONS(
      message<rp::TypeError>(loop({.disk_checkpoints = 3})),
      "scan: .disk_checkpoints come on top of .checkpoints or .checkpoint_bytes, got neither");
}
