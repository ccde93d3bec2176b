// Hashes of equations that compute alike.
#pragma once

#include "program/program.h"

namespace reprise {

// Equal for equations of one primitive with equal params whose operands have equal numbers.
template <class Numbers>
std::size_t equation_hash(const Equation& e, const Numbers& operands) {
  std::size_t h = hash_of(e.params) * 31 + reinterpret_cast<std::uintptr_t>(e.prim);
  for (const auto number : operands) h = h * 1000003 + static_cast<std::size_t>(number);
  return h;
}

}  // namespace reprise
