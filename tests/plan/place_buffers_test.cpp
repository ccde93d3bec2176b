#include "plan/place_buffers.h"

#include "base/work.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace reprise::plan {
namespace {

std::vector<Buffer> random_buffers(std::size_t n, std::size_t results, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Buffer> all;
  for (std::size_t i = 0; i < n; ++i) {
    Buffer b;
    b.bytes = 64 * (1 + random() % 100);
    b.first = i;
    b.last = i + random() % 50;
    b.is_result = i < results;
    if (b.is_result) b.last = n + 50;
    all.push_back(b);
  }
  return all;
}

// By offset and time: no two share a byte at the same step.
void check_apart(const std::vector<Buffer>& all, const Placement& placed) {
  std::vector<const Buffer*> order;
  for (const Buffer& b : all) order.push_back(&b);
  std::sort(order.begin(), order.end(),
            [](const Buffer* a, const Buffer* b) { return a->first < b->first; });
  std::size_t overlaps = 0, outside = 0;
  std::vector<const Buffer*> alive;
  for (const Buffer* b : order) {
    std::erase_if(alive, [&](const Buffer* a) { return a->last < b->first; });
    for (const Buffer* a : alive)
      overlaps += a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes ? 1 : 0;
    const bool crosses =
        b->offset < placed.result_bytes && b->offset + b->bytes > placed.result_bytes;
    outside += crosses || b->offset + b->bytes > placed.end ? 1 : 0;
    alive.push_back(b);
  }
  CHECK(overlaps == 0);
  CHECK(outside == 0);
}

std::size_t most_alive(const std::vector<Buffer>& all) {
  std::vector<std::ptrdiff_t> change(2 * all.size() + 200, 0);
  for (const Buffer& b : all) {
    change[b.first] += static_cast<std::ptrdiff_t>(b.bytes);
    change[b.last + 1] -= static_cast<std::ptrdiff_t>(b.bytes);
  }
  std::ptrdiff_t now = 0, most = 0;
  for (std::ptrdiff_t c : change) most = std::max(most, now += c);
  return static_cast<std::size_t>(most);
}

}  // namespace

TEST_CASE("buffers that live at the same time lie apart, few and many") {
  for (const std::size_t n : {10, 500, 4000, 20000}) {
    for (const std::size_t results : {std::size_t{0}, n / 10}) {
      CAPTURE(n);
      CAPTURE(results);
      std::vector<Buffer> all = random_buffers(n, results, 7);
      const Placement placed = place_buffers(all);
      check_apart(all, placed);
    }
  }
}

TEST_CASE("very many buffers take little more than what lives at once") {
  std::vector<Buffer> all = random_buffers(20000, 0, 3);
  const Placement placed = place_buffers(all);
  CHECK(static_cast<double>(placed.end) <= 1.3 * static_cast<double>(most_alive(all)));
}

TEST_CASE("the work of placing very many buffers is in proportion to their number") {
  const auto work_of = [](std::size_t n) {
    std::vector<Buffer> all = random_buffers(n, 0, 5);
    const std::uint64_t before = work_done;
    place_buffers(all);
    return work_done - before;
  };
  const std::uint64_t once = work_of(20000), twice = work_of(40000);
  CHECK(twice <= 2 * once);
}

}  // namespace reprise::plan
