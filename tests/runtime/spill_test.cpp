// The spill file and what happens when it fails: injected from outside, through the file's
// descriptor.
#include "runtime/spill.h"

#include "program/trace.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>

namespace rp = reprise;
namespace fs = std::filesystem;
using rp::Array;
using rp::Arrays;

namespace {

// A directory that is gone at the end of the test.
struct Directory {
  fs::path path;
  Directory() {
    std::string name = fs::temp_directory_path() / "reprise_spill_test_XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  bool is_empty() const { return fs::is_empty(path); }
};

// Open files of this process that lie in the directory: the spill has no other name.
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

std::vector<std::byte> bytes(std::size_t n, int seed) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::byte>((static_cast<int>(i) * 131 + seed) % 251);
  return out;
}

Array ramp(rp::Shape shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((i * 7919) % 101) / 101.f - 0.5f;
  return rp::array(v).reshape(shape);
}

// The gradient of a net of three layers whose products are offloaded.
Array net(Array W, Array x) {
  const auto policy =
      rp::checkpoint_policies::offload_dot_with_no_batch_dims("device", "pinned_host");
  auto layers = [W](Array v) {
    for (int i = 0; i < 3; ++i) v = rp::tanh(rp::matmul(v, W));
    return v;
  };
  return rp::sum(rp::checkpoint(layers, {.policy = policy})(x));
}
const Arrays& arguments() {
  static const Arrays args{ramp({24, 24}), ramp({40, 24})};
  return args;
}
constexpr std::size_t spilled = 3 * 40 * 24 * 4;

std::shared_ptr<const rp::Executable> compiled(const std::string& directory) {
  const auto traced = rp::make_jaxpr(rp::grad(net))(arguments()[0], arguments()[1]);
  return rp::compile(*traced.program(), {.spill_directory = directory});
}
std::vector<float> expected() {
  return rp::jit(rp::grad(net))(arguments()[0], arguments()[1]).to_vector<float>();
}

// Runs with a disturbance right before the first value is read back; it gets the file and the
// value's position.
using Disturbance = std::function<void(int file, off_t position)>;
std::string error_when_read(const rp::Executable& executable, const fs::path& directory,
                            const Disturbance& disturb) {
  const rp::Code& code = executable.code();
  const auto& steps = code.schedule->steps;
  const auto first = std::find_if(steps.begin(), steps.end(), [](const rp::plan::Step& s) {
    const auto* t = std::get_if<rp::plan::TransferStep>(&s.what);
    return t != nullptr && t->what == rp::plan::Transfer::begin_read;
  });
  REQUIRE(first != steps.end());
  const auto position =
      code.memory.places[static_cast<std::size_t>(first->operands[0].root)].offset;
  const rp::Observer observer = [&](std::size_t i, std::byte* const*) {
    if (steps.begin() + static_cast<std::ptrdiff_t>(i) + 1 != first) return;
    const auto files = open_files_in(directory);
    REQUIRE(files.size() == 1);
    disturb(files[0], static_cast<off_t>(position));
  };
  try {
    executable.run(arguments(), &observer);
  } catch (const rp::RuntimeError& e) {
    return e.what();
  }
  return "";
}

// After an error nothing is left, and the executable runs as if nothing had happened.
void check_state(const rp::Executable& executable, const Directory& directory,
                 std::size_t live_before) {
  CHECK(rp::live_bytes() == live_before);
  CHECK(open_files_in(directory.path).empty());
  CHECK(directory.is_empty());
  CHECK(executable.run(arguments())[0].to_vector<float>() == expected());
}

}  // namespace

TEST_CASE("what is written comes back, in memory and in a file") {
  const Directory directory;
  for (const std::string& where : {std::string(), directory.path.string()}) {
    rp::Spill spill(where, 3000);
    const auto a = bytes(1000, 1), b = bytes(999, 2), c = bytes(33, 3);
    spill.begin_write(a.data(), 0, a.size());
    spill.begin_write(b.data(), 1000, b.size());
    const auto written = spill.begin_write(c.data(), 2000, c.size());
    spill.wait(written);
    std::vector<std::byte> x(1000), y(999), z(33);
    const auto third = spill.begin_read(2000, z.data(), z.size());
    const auto first = spill.begin_read(0, x.data(), x.size());
    const auto second = spill.begin_read(1000, y.data(), y.size());
    spill.wait(second);
    spill.wait(first);
    spill.wait(third);
    CHECK(x == a);
    CHECK(y == b);
    CHECK(z == c);
    CHECK(directory.is_empty());  // the file has no name
  }
  CHECK(open_files_in(directory.path).empty());
}

TEST_CASE("a position that is used again holds what was written last") {
  const Directory directory;
  rp::Spill spill(directory.path, 500);
  for (int k = 0; k < 20; ++k) {
    const auto a = bytes(500, k);
    std::vector<std::byte> x(500);
    spill.begin_write(a.data(), 0, a.size());
    spill.wait(spill.begin_read(0, x.data(), x.size()));
    CHECK(x == a);
  }
}

TEST_CASE("a spill that is dropped with transfers waiting ends in order") {
  const Directory directory;
  const auto a = bytes(1 << 20, 1);
  for (int k = 0; k < 10; ++k) {
    rp::Spill spill(directory.path, a.size());
    for (int i = 0; i < 50; ++i) spill.begin_write(a.data(), 0, a.size());
  }
  CHECK(open_files_in(directory.path).empty());
}

TEST_CASE("a missing directory is an error that names it") {
  const auto executable = compiled("/no/such/directory");
  const std::size_t before = rp::live_bytes();
  CHECK_THROWS_WITH_AS(executable->run(arguments()),
                       doctest::Contains("offload: cannot make a spill file in "
                                         "'/no/such/directory', got: No such file or directory"),
                       rp::RuntimeError);
  CHECK_THROWS_WITH_AS(executable->run(arguments()),
                       doctest::Contains("hint: make the directory and let this user write to it, "
                                         "or name another directory with .spill_directory or "
                                         "REPRISE_SPILL_DIR"),
                       rp::RuntimeError);
  CHECK(rp::live_bytes() == before);
}

TEST_CASE("a directory that appears later is used") {
  const Directory directory;
  const std::string inner = directory.path / "inner";
  const auto executable = compiled(inner);
  CHECK_THROWS_AS(executable->run(arguments()), rp::RuntimeError);
  fs::create_directory(inner);
  CHECK(executable->run(arguments())[0].to_vector<float>() == expected());
}

TEST_CASE("a directory that cannot be written is an error") {
  if (::geteuid() == 0) {  // root may write anywhere but to /proc
    CHECK_THROWS_WITH_AS(rp::SpillFile("/proc", 100),
                         doctest::Contains("offload: cannot make a spill file in '/proc', got: "),
                         rp::RuntimeError);
    return;
  }
  const Directory directory;
  fs::permissions(directory.path, fs::perms::owner_read | fs::perms::owner_exec);
  CHECK_THROWS_WITH_AS(rp::SpillFile(directory.path, 100), doctest::Contains("Permission denied"),
                       rp::RuntimeError);
  fs::permissions(directory.path, fs::perms::owner_all);
}

TEST_CASE("a full disk shows before anything runs") {
  struct statvfs disk {};
  // no file system in memory with a limit
  if (::statvfs("/dev/shm", &disk) != 0 || disk.f_blocks == 0) return;
  const std::size_t too_much = static_cast<std::size_t>(disk.f_blocks) * disk.f_frsize + (1 << 20);
  CHECK_THROWS_WITH_AS(rp::SpillFile("/dev/shm", too_much),
                       doctest::Contains((std::to_string(too_much) +
                                          " bytes in '/dev/shm', got: No space left on device")
                                             .c_str()),
                       rp::RuntimeError);
  CHECK(open_files_in("/dev/shm").empty());
}

TEST_CASE("a limit on the size of files shows before anything runs") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit low = old;
  low.rlim_cur = spilled - 1;
  ::setrlimit(RLIMIT_FSIZE, &low);
  int steps = 0;
  const rp::Observer count = [&](std::size_t, std::byte* const*) { ++steps; };
  CHECK_THROWS_WITH_AS(executable->run(arguments(), &count),
                       doctest::Contains(("got a limit of " + std::to_string(spilled - 1) +
                                          " bytes for files of this process")
                                             .c_str()),
                       rp::RuntimeError);
  ::setrlimit(RLIMIT_FSIZE, &old);
  CHECK(steps == 0);
  check_state(*executable, directory, before);
}

TEST_CASE("a byte that changed on disk is an error") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  for (off_t i : {0, 1921, 3839}) {
    const std::string message =
        error_when_read(*executable, directory.path, [&](int file, off_t position) {
          char c = 0;
          REQUIRE(::pread(file, &c, 1, position + i) == 1);
          c = static_cast<char>(c ^ 4);
          REQUIRE(::pwrite(file, &c, 1, position + i) == 1);
        });
    CHECK(message.find("gave back other bytes than were written") != std::string::npos);
    CHECK(message.find(directory.path.string()) != std::string::npos);
    check_state(*executable, directory, before);
  }
}

TEST_CASE("a file that was cut short is an error") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  const std::string message = error_when_read(
      *executable, directory.path,
      [](int file, off_t position) { REQUIRE(::ftruncate(file, position + 100) == 0); });
  CHECK(message.find("ended early, got 100 of 3840 bytes") != std::string::npos);
  check_state(*executable, directory, before);
}

TEST_CASE("a disk that fails when it is read is an error") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  const std::string message = error_when_read(*executable, directory.path, [](int file, off_t) {
    const int other = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(::dup2(other, file) == file);
    ::close(other);
  });
  CHECK(message.find("offload: reading 3840 bytes from the spill file") != std::string::npos);
  CHECK(message.find("Is a directory") != std::string::npos);
  check_state(*executable, directory, before);
}

TEST_CASE("a disk that fills up while running is an error") {
  const Directory directory;
  const auto executable = compiled(directory.path);
  const std::size_t before = rp::live_bytes();
  bool done = false;
  // before the first value is written
  const rp::Observer full = [&](std::size_t, std::byte* const*) {
    if (std::exchange(done, true)) return;
    const int other = ::open("/dev/full", O_RDWR | O_CLOEXEC);
    REQUIRE(::dup2(other, open_files_in(directory.path).at(0)) >= 0);
    ::close(other);
  };
  CHECK_THROWS_WITH_AS(executable->run(arguments(), &full),
                       doctest::Contains("to the spill file in"), rp::RuntimeError);
  done = false;
  CHECK_THROWS_WITH_AS(executable->run(arguments(), &full),
                       doctest::Contains("No space left on device"), rp::RuntimeError);
  check_state(*executable, directory, before);
}

TEST_CASE("nothing is left when the process dies") {
  const Directory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    rp::SpillFile file(directory.path, 1 << 16);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(directory.is_empty());
}
