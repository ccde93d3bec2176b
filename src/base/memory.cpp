#include "base/memory.h"

#include <atomic>
#include <cstdlib>

#include "base/error.h"

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

}  // namespace

std::shared_ptr<std::byte> allocate_buffer(std::size_t bytes) {
  constexpr std::size_t address_space = std::size_t{1} << 47;  // no process has more
  if (bytes > address_space) fail<RuntimeError>("memory: too large, got ", bytes, " bytes");
  const std::size_t rounded =
      (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  void* memory = std::aligned_alloc(buffer_alignment, rounded == 0 ? buffer_alignment : rounded);
  if (memory == nullptr) fail<RuntimeError>("memory: exhausted, got a request for ", bytes, " bytes");
  count_allocated(bytes);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) {
            live.fetch_sub(bytes, std::memory_order_relaxed);
            std::free(p);
          }};
}

std::size_t live_bytes() { return live.load(std::memory_order_relaxed); }
std::size_t peak_live_bytes() { return peak.load(std::memory_order_relaxed); }
void reset_peak_live_bytes() { peak.store(live.load()); }

}  // namespace reprise
