#include "io/file.h"

#include "io/destination.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <new>

namespace reprise::io {

// ------------------------------------------------------------------------------------------ memory
Buffer::Buffer(std::size_t size) {
  constexpr std::align_val_t alignment{64};
  auto* memory =
      static_cast<std::byte*>(::operator new(size == 0 ? 1 : size, alignment, std::nothrow));
  if (memory == nullptr)
    fail<RuntimeError>("load: not enough memory, got ", size, " bytes for one array");
  data_ = std::shared_ptr<std::byte[]>(
      memory, [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); });
}

Array Buffer::to_array(const Type& type) const { return view(data_.get(), type, data_); }

// ----------------------------------------------------------------------------------------- reading
InputFile::InputFile(const char* op, const std::string& path) : op_(op), path_(path) {
  // Without O_NONBLOCK a pipe would wait for a writer before we learn that it is one.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    fail<RuntimeError>(op, ": cannot open '", path, "', got ", std::strerror(errno));
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    fail<RuntimeError>(op, ": not a regular file, got '", path, "'");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, void* out, std::size_t count) const {
  if (offset > size_ || count > size_ - offset) {
    reject("the file ends too early, got ", size_, " bytes where ", count, " are needed at ",
           offset);
  }
  auto* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, to, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) reject("cannot read, got ", std::strerror(errno));
    if (got == 0) reject("the file became shorter while it was read, got its end at ", offset);
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string InputFile::read_text(std::uint64_t offset, std::size_t count) const {
  if (count > size_) read(offset, nullptr, count);  // says what is wrong
  std::string out(count, '\0');
  read(offset, out.data(), count);
  return out;
}

// ----------------------------------------------------------------------------------------- writing
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// While this lives, a pipe that nobody reads any more is an error of write, not the end of the
// process.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    const int error = errno;
    const timespec at_once{};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

// A file that is replaced keeps its owner, where we may give it away, and its permissions.
void keep_owner_and_mode(const std::string& replaced, int descriptor) {
  struct stat old {};
  if (::stat(replaced.c_str(), &old) != 0) return;
  if (::fchown(descriptor, old.st_uid, old.st_gid) == 0 || errno == EPERM) {
    static_cast<void>(::fchmod(descriptor, old.st_mode & 07777));
  }
}

}  // namespace

OutputFile::OutputFile(const char* op, const std::string& path) : op_(op), path_(path) {
  const Destination to = destination_of(op, path);
  target_ = to.file;
  descriptor_ = to.stream;
  if (target_.empty()) return;
  remove_stale_temporaries(target_);
  descriptor_ = open_temporary(target_, temporary_);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail_with_errno("cannot write", errno);
  }
  keep_owner_and_mode(target_, descriptor_);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::fail_with_errno(const char* what, int error) const {
  fail<RuntimeError>(op_, ": ", what, " '", path_, "', got ", std::strerror(error));
}

void OutputFile::write(const void* data, std::size_t count) {
  const WithoutPipeSignal without;
  const auto* from = static_cast<const char*>(data);
  position_ += count;
  while (count > 0) {
    const ssize_t done = ::write(descriptor_, from, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with_errno("cannot write", errno);
    from += done;
    count -= static_cast<std::size_t>(done);
  }
}

void OutputFile::commit() {
  if (target_.empty()) return close();
  if (::fsync(descriptor_) != 0) fail_with_errno("cannot flush", errno);
  // Renamed while it is open: its lock keeps others from clearing it away.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("cannot replace", errno);
  temporary_.clear();
  close();
  // The new name itself must reach the disk too.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_with_errno("cannot open the folder of", errno);
  const int flushed = ::fsync(folder);
  const int error = errno;
  ::close(folder);
  // Some file systems cannot flush folders and say so; the file itself is safe.
  if (flushed != 0 && error != EINVAL && error != ENOTSUP)
    fail_with_errno("cannot flush the folder of", error);
}

void OutputFile::close() {
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_with_errno("cannot close", errno);
}

}  // namespace reprise::io
