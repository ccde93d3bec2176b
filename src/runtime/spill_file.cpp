#include "runtime/spill_file.h"

#include "base/error.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace reprise {
namespace {

constexpr const char* other_directory =
    "name another directory with .spill_directory or REPRISE_SPILL_DIR";

std::string reason(int error) { return std::generic_category().message(error); }

// A file without a name. Where the file system has no such thing, its name is removed at once.
int open_nameless(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string path = directory + "/reprise_spill_XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

// Four independent chains keep up with memory; every bit of the input reaches the sum.
std::uint64_t checksum(const std::byte* from, std::size_t bytes) {
  constexpr std::uint64_t prime = 0x9E3779B185EBCA87;
  std::array<std::uint64_t, 4> chains{1, 2, 3, 4};
  std::size_t i = 0;
  for (; i + sizeof(chains) <= bytes; i += sizeof(chains)) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), from + i, sizeof(words));
    for (std::size_t k = 0; k < words.size(); ++k)
      chains[k] = std::rotl((chains[k] ^ words[k]) * prime, 29);
  }
  std::array<std::uint64_t, 4> rest{};
  if (i < bytes) std::memcpy(rest.data(), from + i, bytes - i);
  std::uint64_t sum = bytes;
  for (std::size_t k = 0; k < rest.size(); ++k)
    sum = std::rotl((sum ^ chains[k] ^ std::rotl(rest[k], 7)) * prime, 31);
  return sum;
}

}  // namespace

SpillFile::SpillFile(std::string directory, std::size_t bytes)
    : directory_(std::move(directory)), file_(open_nameless(directory_)) {
  if (file_ < 0) {
    fail_with_hint<RuntimeError>(
        str("make the directory and let this user write to it, or ", other_directory),
        "offload: cannot make a spill file in '", directory_, "', got: ", reason(errno));
  }
  try {
    reserve(bytes);
  } catch (...) {
    ::close(file_);
    throw;
  }
}
SpillFile::~SpillFile() { ::close(file_); }

void SpillFile::reserve(std::size_t bytes) {
  // Asked beforehand: the system would end the process instead of refusing.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    fail_with_hint<RuntimeError>("raise the limit (ulimit -f)", "offload: the spill file needs ",
                                 bytes, " bytes in '", directory_, "', got a limit of ",
                                 limit.rlim_cur, " bytes for files of this process");
  }
  int error = 0;
  do {
    error = ::posix_fallocate(file_, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) {
    fail_with_hint<RuntimeError>(str("free space there, or ", other_directory),
                                 "offload: the spill file needs ", bytes, " bytes in '", directory_,
                                 "', got: ", reason(error));
  }
}

std::optional<TransferFailure> SpillFile::write(std::size_t position, const std::byte* from,
                                                std::size_t bytes) {
  checksums_[position] = checksum(from, bytes);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n =
        ::pwrite(file_, from + done, bytes - done, static_cast<off_t>(position + done));
    if (n > 0)
      done += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR) {
      return TransferFailure{
          str("offload: writing ", bytes, " bytes to the spill file in '", directory_,
              "' failed, got: ", n == 0 ? "nothing written" : reason(errno)),
          other_directory};
    }
  }
  return std::nullopt;
}

void SpillFile::expect_read(std::size_t position, std::size_t bytes) {
  ::posix_fadvise(file_, static_cast<off_t>(position), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
}

std::optional<TransferFailure> SpillFile::read(std::size_t position, std::byte* to,
                                               std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(file_, to + done, bytes - done, static_cast<off_t>(position + done));
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0) {
      return TransferFailure{str("offload: the spill file in '", directory_, "' ended early, got ",
                                 done, " of ", bytes, " bytes"),
                             str("something else has cut the file short; ", other_directory)};
    } else if (errno != EINTR) {
      return TransferFailure{str("offload: reading ", bytes, " bytes from the spill file in '",
                                 directory_, "' failed, got: ", reason(errno)),
                             other_directory};
    }
  }
  const auto written = checksums_.find(position);
  if (written != checksums_.end() && written->second == checksum(to, bytes)) return std::nullopt;
  return TransferFailure{
      str("offload: the spill file in '", directory_,
          "' gave back other bytes than were written, got a wrong checksum of ", bytes, " bytes"),
      str("the disk is faulty or something else has written to the file; ", other_directory)};
}

}  // namespace reprise
