#include "io/destination.h"

#include "reprise/errors.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

namespace reprise::io {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the system allows
constexpr const char* temporary_mark = ".tmp-";
constexpr std::size_t mark_digits = 10;

std::optional<fs::path> next_link(const fs::path& path) {
  std::error_code none;
  const fs::path to = fs::read_symlink(path, none);
  if (none) return std::nullopt;
  return to.is_absolute() ? to : path.parent_path() / to;
}

// The number in /dev/stdout, /dev/fd/3 and links to them. Their files have positions and other
// writers: they are written to, never replaced.
std::optional<int> own_descriptor(fs::path path) {
  std::error_code none;
  const fs::path ours = fs::canonical("/proc/self/fd", none);
  if (none) return std::nullopt;
  for (int i = 0; i < most_links; ++i) {
    const std::string name = path.filename().string();
    const bool is_number =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && fs::canonical(path.parent_path(), none) == ours) {
      return std::atoi(name.c_str());
    }
    const auto next = next_link(path);
    if (!next) return std::nullopt;
    path = *next;
  }
  return std::nullopt;
}

std::string followed(fs::path path) {
  for (int i = 0; i < most_links; ++i) {
    const auto next = next_link(path);
    if (!next) break;
    path = *next;
  }
  return path.string();
}

[[noreturn]] void refuse(const char* op, const char* kind, const std::string& path) {
  fail<RuntimeError>(op, ": only files and pipes can be written, got the ", kind, " '", path, "'");
}
[[noreturn]] void cannot_write(const char* op, const std::string& path) {
  fail<RuntimeError>(op, ": cannot write '", path, "', got ", std::strerror(errno));
}

int duplicate_of(int descriptor) {
  if (descriptor == STDOUT_FILENO) {  // what was printed before comes before
    std::cout.flush();
    std::fflush(stdout);
  }
  return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

std::string random_name(const std::string& file) {
  static constexpr char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string name = file + temporary_mark;
  for (std::size_t i = 0; i < mark_digits; ++i) name += digits[random() % 36];
  return name;
}

// Writers hold a lock on what they write, which ends with their process at the latest.
void remove_if_abandoned(const fs::path& temporary) {
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat info {};
  const bool abandoned = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
                         ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (abandoned)
    ::unlink(temporary.c_str());  // under the lock: a writer that is just starting sees it
  ::close(descriptor);
}

}  // namespace

Destination destination_of(const char* op, const std::string& path) {
  if (const auto descriptor = own_descriptor(path)) {
    const int stream = duplicate_of(*descriptor);
    if (stream < 0) cannot_write(op, path);
    return {"", stream};
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) cannot_write(op, path);
    return {followed(path), -1};
  }
  if (S_ISREG(info.st_mode)) return {followed(path), -1};
  if (S_ISDIR(info.st_mode)) refuse(op, "directory", path);
  if (S_ISSOCK(info.st_mode)) refuse(op, "socket", path);
  if (!S_ISFIFO(info.st_mode)) refuse(op, "device", path);
  const int stream = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (stream < 0) cannot_write(op, path);
  return {"", stream};
}

void remove_stale_temporaries(const std::string& file) {
  const fs::path path(file);
  const std::string start = path.filename().string() + temporary_mark;
  std::error_code none;
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, none), end; !none && it != end; it.increment(none)) {
    const std::string name = it->path().filename().string();
    const bool ours = name.size() == start.size() + mark_digits && name.starts_with(start);
    if (ours) found.push_back(it->path());
  }
  for (const fs::path& temporary : found) remove_if_abandoned(temporary);
}

int open_temporary(const std::string& file, std::string& name) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    name = random_name(file);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
    if (descriptor < 0) continue;
    // Someone who cleans up may have taken it for abandoned before it was locked.
    const bool taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat info {};
    if (!taken && ::fstat(descriptor, &info) == 0 && info.st_nlink > 0) return descriptor;
    ::close(descriptor);
    errno = EAGAIN;
  }
  return -1;
}

}  // namespace reprise::io
