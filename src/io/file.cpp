#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>

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
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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

// Through symbolic links: the file that is there shall be replaced, not the link to it.
std::string followed(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, ignored);
  return ignored ? path : target.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string unused_name(const std::string& target) {
  static constexpr char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string name = target + ".tmp-";
  for (int i = 0; i < 10; ++i) name += digits[random() % 36];
  return name;
}

}  // namespace

OutputFile::OutputFile(const char* op, const std::string& path)
    : op_(op), path_(path), target_(followed(path)) {
  for (int attempt = 0; attempt < 10 && descriptor_ < 0; ++attempt) {
    temporary_ = unused_name(target_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    fail_with_errno("cannot write", errno);
  }
  // A file that is replaced keeps its permissions.
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && S_ISREG(old.st_mode)) {
    static_cast<void>(::fchmod(descriptor_, old.st_mode & 07777));
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::fail_with_errno(const char* what, int error) const {
  fail<RuntimeError>(op_, ": ", what, " '", path_, "', got ", std::strerror(error));
}

void OutputFile::write(const void* data, std::size_t count) {
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
  if (::fsync(descriptor_) != 0) fail_with_errno("cannot flush", errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_with_errno("cannot close", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("cannot replace", errno);
  temporary_.clear();
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

}  // namespace reprise::io
