// Offsets for buffers with known lifetimes, so that those that live at the same time do not
// overlap.
#pragma once

#include <cstddef>
#include <vector>

namespace reprise::plan {

// Bytes that live from step `first` to step `last`; several values may share them one after
// another.
struct Buffer {
  static constexpr auto none = static_cast<std::size_t>(-1);
  std::size_t bytes = 0, first = none, last = 0;
  bool is_result = false;
  std::size_t offset = none;
};

struct Placement {
  std::size_t result_bytes =
      0;  // [0, result_bytes): results side by side, and what ends before they begin
  std::size_t end = 0;
};
// Sets the offsets. No buffer crosses the end of the results.
Placement place_buffers(std::vector<Buffer>&);

}  // namespace reprise::plan
