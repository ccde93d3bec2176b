#include "plan/place_buffers.h"

#include "base/work.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

namespace reprise::plan {
namespace {

using Order = std::vector<std::size_t>;  // numbers of buffers

// Memory that is taken and given back as time goes on: the smallest piece that fits, else more at
// the end.
class Pieces {
 public:
  explicit Pieces(std::size_t begin) : end_(begin) {}
  std::size_t end() const { return end_; }

  std::size_t take(std::size_t bytes) {
    const auto fits = by_size_.lower_bound({bytes, 0});
    if (fits == by_size_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const auto [size, offset] = *fits;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  void give(std::size_t offset, std::size_t bytes) {
    const auto after = at_.lower_bound(offset);
    if (after != at_.end() && after->first == offset + bytes) {
      bytes += after->second;
      remove(after->first, after->second);
    }
    const auto next = at_.lower_bound(offset);
    if (next != at_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      const auto [first, size] = *std::prev(next);
      remove(first, size);
      offset = first;
      bytes += size;
    }
    add(offset, bytes);
  }

 private:
  void add(std::size_t offset, std::size_t bytes) {
    at_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::size_t offset, std::size_t bytes) {
    at_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::size_t end_;
  std::map<std::size_t, std::size_t> at_;                  // offset -> bytes
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // (bytes, offset)
};

class Placer {
 public:
  explicit Placer(std::vector<Buffer>& buffers) : buffers_(buffers) {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      if (!buffers_[b].is_result) {
        others_.push_back(b);
        continue;
      }
      buffers_[b].offset = result_bytes_;
      result_bytes_ += buffers_[b].bytes;
      ++results_;
    }
  }

  Placement run() {
    return {result_bytes_, buffers_.size() <= very_many ? place_closely() : place_many()};
  }

 private:
  static constexpr std::size_t many = 3000;  // one order only
  static constexpr std::size_t very_many =
      16384;  // the search, which is quadratic, for the largest only

  // In some order, each at the lowest offset where nothing that lives at the same time lies; the
  // border between block and arena is not crossed. Several orders are tried where that takes no
  // time.
  std::size_t place_closely() {
    const auto bytes = [&](std::size_t b) { return static_cast<double>(buffers_[b].bytes); };
    const auto span = [&](std::size_t b) {
      return static_cast<double>(buffers_[b].last - buffers_[b].first + 1);
    };
    const std::function<double(std::size_t)> weights[] = {
        bytes, [&](std::size_t b) { return bytes(b) * span(b); }, span,
        [&](std::size_t b) { return -static_cast<double>(buffers_[b].first); },
        [&](std::size_t b) { return bytes(b) * std::sqrt(span(b)); }};
    constexpr int rounds = 24;
    Order best;
    std::size_t least = Buffer::none;
    for (const auto& weight : weights) {
      Order order = others_;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
      // What sticks out is placed first in the next round.
      for (int round = 0; round < (others_.size() > many ? 1 : rounds); ++round) {
        const std::size_t end = place_in_order(order);
        if (end < least) {
          least = end;
          best = order;
        }
        const auto highest = std::find_if(order.begin(), order.end(), [&](std::size_t b) {
          return buffers_[b].offset + buffers_[b].bytes == end;
        });
        if (highest == order.begin() || highest == order.end()) break;
        std::rotate(order.begin(), highest, highest + 1);
      }
      if (others_.size() > many) break;
    }
    return place_in_order(best);
  }

  std::size_t place_in_order(const Order& order) {
    struct Placed {
      std::size_t offset, end;
      std::uint32_t first, last;
    };
    std::vector<Placed>
        placed;  // sorted by offset; what the search needs and no more: it is quadratic
    placed.reserve(results_ + order.size());
    const auto add = [&](const Buffer& b) {
      const Placed p{b.offset, b.offset + b.bytes, static_cast<std::uint32_t>(b.first),
                     static_cast<std::uint32_t>(b.last)};
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), p,
                           [](const Placed& x, const Placed& y) { return x.offset < y.offset; }),
          p);
    };
    for (const Buffer& b : buffers_) {
      if (b.is_result) add(b);
    }
    std::size_t end = result_bytes_;
    for (std::size_t b : order) {
      Buffer& now = buffers_[b];
      std::size_t offset = 0;
      const auto skip_border = [&] {
        if (offset < result_bytes_ && offset + now.bytes > result_bytes_) offset = result_bytes_;
      };
      skip_border();
      for (const Placed& o : placed) {
        if (o.last < now.first || o.first > now.last || o.end <= offset) continue;
        if (o.offset >= offset + now.bytes) break;
        offset = o.end;
        skip_border();
      }
      now.offset = offset;
      end = std::max(end, offset + now.bytes);
      add(now);
    }
    return end;
  }

  // So many that searching for all would take minutes: in the order of time, or that only for what
  // the largest leave.
  std::size_t place_many() {
    const std::size_t in_time = place_in_time(others_, result_bytes_);
    if (results_ >= very_many) return in_time;
    Order largest = others_;
    std::stable_sort(largest.begin(), largest.end(), [&](std::size_t a, std::size_t b) {
      return buffers_[a].bytes > buffers_[b].bytes;
    });
    const auto border = largest.begin() +
                        static_cast<std::ptrdiff_t>(std::min(largest.size(), very_many - results_));
    const Order rest(border, largest.end());
    largest.erase(border, largest.end());
    count_work(largest.size() * (results_ + largest.size()));
    const std::size_t both = place_in_time(rest, place_in_order(largest));
    return both <= in_time ? both : place_in_time(others_, result_bytes_);
  }
  std::size_t place_in_time(Order order, std::size_t begin) {
    Order ends = order;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(buffers_[a].first, a) < std::pair(buffers_[b].first, b);
    });
    std::sort(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(buffers_[a].last, a) < std::pair(buffers_[b].last, b);
    });
    Pieces pieces(begin);
    auto ended = ends.begin();
    for (std::size_t b : order) {
      count_work();
      for (; buffers_[*ended].last < buffers_[b].first; ++ended)
        pieces.give(buffers_[*ended].offset, buffers_[*ended].bytes);
      buffers_[b].offset = pieces.take(buffers_[b].bytes);
    }
    return pieces.end();
  }

  std::vector<Buffer>& buffers_;
  Order others_;
  std::size_t results_ = 0, result_bytes_ = 0;
};

}  // namespace

Placement place_buffers(std::vector<Buffer>& buffers) { return Placer(buffers).run(); }

}  // namespace reprise::plan
