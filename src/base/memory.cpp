#include "base/memory.h"

#include "base/error.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise {
namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

void count_allocated(std::size_t bytes) {
  const std::size_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t seen = peak.load(std::memory_order_relaxed);
  while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

// Large blocks come from the system, not from malloc, which would keep them between small ones when
// they are freed. Sanitizers see only what malloc gives. A null pointer: there are none left.
#if defined(__has_feature)
#define REPRISE_HAS_FEATURE(x) __has_feature(x)
#else
#define REPRISE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || REPRISE_HAS_FEATURE(address_sanitizer)
void* map_block(std::size_t bytes) { return std::aligned_alloc(buffer_alignment, bytes); }
void unmap_block(void* block, std::size_t) { std::free(block); }
#else
void* map_block(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}
void unmap_block(void* block, std::size_t bytes) { munmap(block, bytes); }
#endif

// Those that were freed wait here for a request of the same size: fresh memory costs a page fault
// for every 4 KiB, which is more than most programs compute on it.
class FreeBlocks {
 public:
  static FreeBlocks& get() {
    static FreeBlocks& blocks = *new FreeBlocks;  // arrays may be freed until the very end
    return blocks;
  }
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      if (blocks_[i].first != bytes) continue;
      void* found = blocks_[i].second;
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
      total_ -= bytes;
      return found;
    }
    return nullptr;
  }
  void put(std::size_t bytes, void* block) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace_back(bytes, block);
    total_ += bytes;
    while (blocks_.size() > most_blocks || total_ > most_bytes) drop_oldest();
  }
  bool drop_all() {
    const std::lock_guard lock(mutex_);
    const bool any = !blocks_.empty();
    while (!blocks_.empty()) drop_oldest();
    return any;
  }

 private:
  static constexpr std::size_t most_blocks = 32, most_bytes = std::size_t{1} << 30;
  void drop_oldest() {
    total_ -= blocks_.front().first;
    unmap_block(blocks_.front().second, blocks_.front().first);
    blocks_.erase(blocks_.begin());
  }
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, void*>> blocks_;
  std::size_t total_ = 0;
};
constexpr std::size_t large_block = 256 << 10;

std::size_t block_size(std::size_t bytes) {
  return std::max(buffer_alignment,
                  (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment);
}

void* allocate_block(std::size_t bytes) {
  if (bytes < large_block) return std::aligned_alloc(buffer_alignment, bytes);
  if (void* found = FreeBlocks::get().take(bytes)) return found;
  void* memory = map_block(bytes);
  if (memory == nullptr && FreeBlocks::get().drop_all()) memory = map_block(bytes);
  return memory;
}

}  // namespace

void release_free_blocks() { FreeBlocks::get().drop_all(); }

void* allocate_elements(std::size_t elements, std::size_t beside) {
  constexpr std::size_t address_space = std::size_t{1} << 47;  // no process has more
  if (elements > address_space) fail<RuntimeError>("memory: too large, got ", elements, " bytes");
  void* memory = allocate_block(block_size(elements + beside));
  if (memory == nullptr)
    fail<RuntimeError>("memory: exhausted, got a request for ", elements, " bytes");
  count_allocated(elements);
  return memory;
}
void free_elements(void* memory, std::size_t elements, std::size_t beside) noexcept {
  live.fetch_sub(elements, std::memory_order_relaxed);
  const std::size_t size = block_size(elements + beside);
  if (size >= large_block)
    FreeBlocks::get().put(size, memory);
  else
    std::free(memory);
}

std::shared_ptr<std::byte> allocate_buffer(std::size_t bytes) {
  return {static_cast<std::byte*>(allocate_elements(bytes, 0)),
          [bytes](std::byte* p) { free_elements(p, bytes, 0); }};
}

std::size_t live_bytes() { return live.load(std::memory_order_relaxed); }
std::size_t peak_live_bytes() { return peak.load(std::memory_order_relaxed); }
void reset_peak_live_bytes() { peak.store(live.load()); }

}  // namespace reprise
