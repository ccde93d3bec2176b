// Which variables share storage: a view lives in the memory of what it is a view of.
#pragma once

#include "plan/view.h"

namespace reprise::plan {

struct Roots {
  std::vector<Var> of;        // the variable whose storage holds each variable
  std::vector<bool> is_view;  // made by a shape equation that costs nothing
  // Positions of equations: where the storage is made (arguments: 0), where it is read last.
  std::vector<std::size_t> made, last_read;
  // Of roots in the arena: not of arguments, of what is free to make (iota, numbers), of what is
  // offloaded.
  std::vector<std::size_t> bytes;
};
Roots find_roots(const Program&);

// Bytes alive while each equation runs, arguments not counted.
std::vector<std::size_t> live_bytes(const Program&, const Roots&);

}  // namespace reprise::plan
