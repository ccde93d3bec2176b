#include "reality/allocation_counter.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

// What glibc's own functions are called; ours below stand in front of them.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

std::atomic<std::size_t> now{0}, most{0}, refused{0};

void add(std::size_t bytes) {
  const std::size_t sum = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t seen = most.load(std::memory_order_relaxed);
  while (seen < sum && !most.compare_exchange_weak(seen, sum, std::memory_order_relaxed)) {
  }
}
void* counted(void* p) {
  if (p != nullptr) add(malloc_usable_size(p));
  return p;
}
bool is_refused(std::size_t bytes) {
  const std::size_t limit = refused.load(std::memory_order_relaxed);
  if (limit == 0 || bytes < limit) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* malloc(std::size_t n) { return is_refused(n) ? nullptr : counted(__libc_malloc(n)); }
void* calloc(std::size_t count, std::size_t size) {
  return is_refused(count * size) ? nullptr : counted(__libc_calloc(count, size));
}
void free(void* p) {
  if (p != nullptr) now.fetch_sub(malloc_usable_size(p), std::memory_order_relaxed);
  __libc_free(p);
}
void* realloc(void* p, std::size_t n) {
  if (is_refused(n)) return nullptr;
  const std::size_t before = p == nullptr ? 0 : malloc_usable_size(p);
  void* const moved = __libc_realloc(p, n);
  if (moved == nullptr && n != 0) return nullptr;
  now.fetch_sub(before, std::memory_order_relaxed);
  return counted(moved);
}
void* memalign(std::size_t alignment, std::size_t n) {
  return is_refused(n) ? nullptr : counted(__libc_memalign(alignment, n));
}
void* aligned_alloc(std::size_t alignment, std::size_t n) { return memalign(alignment, n); }
int posix_memalign(void** to, std::size_t alignment, std::size_t n) {
  *to = memalign(alignment, n);
  return *to == nullptr && n != 0 ? ENOMEM : 0;
}
void* mmap(void* at, std::size_t n, int protection, int flags, int file, off_t offset) {
  if (is_refused(n)) return MAP_FAILED;
  using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const auto next = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  void* const p = next(at, n, protection, flags, file, offset);
  if (p != MAP_FAILED) add(n);
  return p;
}
int munmap(void* at, std::size_t n) {
  using Unmap = int (*)(void*, std::size_t);
  static const auto next = reinterpret_cast<Unmap>(dlsym(RTLD_NEXT, "munmap"));
  now.fetch_sub(n, std::memory_order_relaxed);
  return next(at, n);
}

}  // extern "C"

namespace allocation_counter {

std::size_t live() { return now; }
std::size_t peak() { return most; }
void reset_peak() { most.store(now.load()); }
void refuse_from(std::size_t bytes) { refused = bytes; }

}  // namespace allocation_counter
