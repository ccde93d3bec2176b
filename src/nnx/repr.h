// Texts for variables, modules and states, as Flax prints them.
#pragma once

#include "nnx/walk.h"

#include <string>
#include <vector>

namespace reprise::nnx::detail {

// How many numbers and bytes there are of each kind, in the order in which they are met.
struct Tally {
  struct Row {
    std::string kind;
    std::int64_t count = 0;
    std::size_t bytes = 0;
  };
  std::vector<Row> rows;
  void add(const Kind& kind, const Array& value);
  Row total() const;
};
const Kind& family(const Kind& kind);                          // random state is counted together
std::string size_text(std::int64_t count, std::size_t bytes);  // 9 (36 B), 3,072 (12.3 KB)
std::string indented(const std::string& text, const std::string& indent);

}  // namespace reprise::nnx::detail
