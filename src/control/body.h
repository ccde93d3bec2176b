// What the rules of calls share: masks, operand lists, reading bodies.
#pragma once

#include "program/trace.h"

#include <optional>

namespace reprise {

std::vector<bool> nonzero_mask(const Tangents&);
std::vector<bool> mapped_mask(const Axes&);
std::vector<bool> part_of(const std::vector<bool>& mask, std::size_t begin, std::size_t end);
Arrays concat(const Arrays& a, const Arrays& b);
Arrays slice_of(const Arrays& xs, std::size_t begin, std::size_t end);
Arrays nonzero_only(const Tangents&);
// values[i] where mask[i] is set, taken from `some` in order; else nullopt.
Tangents spread(const std::vector<bool>& mask, const Arrays& some, std::size_t first = 0);
template <class T>
std::vector<T> concat_masks(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Operand types must be those of the body's inputs.
void check_operands(const char* op, const Program& body, const Types& in, std::size_t first = 0);

// A value that differs between ranks does not decide whether they do something together.
void check_decision(const char* op, const Type& decides, const Program& body);

// Numbers of carries that a loop keeps, in memory and on disk: parameters that plain loops do not
// have.
std::int64_t count_or_none(const Params&, const char* key);
Params with_budget(Params, std::int64_t checkpoints, std::int64_t disk_checkpoints);
void check_budget(const char* op, const Params&, std::optional<std::int64_t> most);

}  // namespace reprise
