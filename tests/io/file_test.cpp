#include "io/file.h"

#include "io/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

namespace reprise {
namespace {

using namespace io_test;
namespace fs = std::filesystem;

void save(const std::string& path, const std::string& text) {
  io::OutputFile file("save", path);
  file.write(text);
  file.commit();
}

TEST_CASE("a save to a pipe is read at its other end, and the pipe stays") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = read_bytes(pipe); });
  io::save_npz(pipe, small_tree());
  reader.join();
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.files() == 1);
  write_bytes(folder / "copy.npz", got);
  CHECK(same(io::load_npz(folder / "copy.npz").array("n"), small_tree().array("n")));
}

TEST_CASE("a pipe that nobody reads any more is an error, not the end of the process") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread reader([&] { ::close(::open(pipe.c_str(), O_RDONLY)); });
  io::OutputFile file("save", pipe);
  reader.join();
  CHECK_THROWS_WITH_AS(file.write("x"),
                       ("save: cannot write '" + pipe + "', got Broken pipe").c_str(),
                       RuntimeError);
  sigset_t pending;
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGPIPE) == 0);
}

TEST_CASE("an own descriptor is written to where it stands, never replaced") {
  const Folder folder;
  const std::string path = folder / "log";
  const int log = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::write(log, "one ", 4) == 4);
  save("/dev/fd/" + std::to_string(log), "two ");
  fs::create_symlink("/proc/self/fd/" + std::to_string(log), folder / "link");
  save(folder / "link", "three");
  REQUIRE(::write(log, " four", 5) == 5);
  ::close(log);
  CHECK(read_bytes(path) == "one two three four");
  CHECK(folder.files() == 2);
  CHECK_THROWS_AS(save("/dev/fd/987654", "x"), RuntimeError);
}

TEST_CASE("devices and directories are refused and stay what they are") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(save(folder.path().string(), "x"),
                       ("save: only files and pipes can be written, got the directory '" +
                        folder.path().string() + "'")
                           .c_str(),
                       RuntimeError);
  // Who may make a device could also replace one: then it is one of our own.
  std::string device = folder / "null";
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    if (::geteuid() == 0) return;
    device = "/dev/null";
  }
  fs::create_symlink(device, folder / "link");
  for (const std::string& path : {device, folder / "link"}) {
    CHECK_THROWS_WITH_AS(
        save(path, "x"),
        ("save: only files and pipes can be written, got the device '" + path + "'").c_str(),
        RuntimeError);
    CHECK_THROWS_AS(io::save_safetensors(path, small_tree()), RuntimeError);
    CHECK(fs::is_character_file(path));
  }
}

TEST_CASE("symbolic links stay and what they lead to is written, be it there or not") {
  const Folder folder;
  fs::create_directory(folder / "far");
  fs::create_symlink("far/file", folder / "first");
  fs::create_symlink("first", folder / "second");
  for (const char* text : {"made", "replaced"}) {
    save(folder / "second", text);
    CHECK(fs::is_symlink(folder / "second"));
    CHECK(fs::is_symlink(folder / "first"));
    CHECK(read_bytes(folder / "far/file") == text);
  }
  fs::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(save(folder / "loop", "x"), RuntimeError);
  fs::create_symlink("nowhere/file", folder / "lost");
  CHECK_THROWS_AS(save(folder / "lost", "x"), RuntimeError);
  CHECK(fs::is_symlink(folder / "lost"));
}

TEST_CASE(
    "what a killed process left is removed by the next save, what a living one writes is not") {
  const Folder folder;
  const std::string path = folder / "x";
  const pid_t child = ::fork();
  if (child == 0) {
    const io::OutputFile dies("save", path);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(folder.files() == 1);
  write_bytes(folder / "x.tmp-notes", "not ours");
  write_bytes(folder / "y.tmp-0123456789", "of another file");
  io::OutputFile living("save", path);
  CHECK(folder.files() == 3);
  save(path, "new");
  CHECK(folder.files() == 4);
  living.write("newer");
  living.commit();
  CHECK(read_bytes(path) == "newer");
  CHECK(folder.files() == 3);
}

TEST_CASE("a replaced file keeps its permissions") {
  const Folder folder;
  save(folder / "x", "old");
  fs::permissions(folder / "x", fs::perms::owner_read | fs::perms::owner_write);
  save(folder / "x", "new");
  CHECK(fs::status(folder / "x").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("loading a pipe is an error and waits for nobody") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(io::load_npz(pipe),
                       doctest::Contains(("not a regular file, got '" + pipe + "'").c_str()),
                       RuntimeError);
  CHECK_THROWS_AS(io::load_safetensors(pipe), RuntimeError);
}

}  // namespace
}  // namespace reprise
