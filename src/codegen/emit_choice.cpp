// Choosing among operands, and identities.
#include "codegen/emit_rules.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

V same(const Emission& m) { return m.x[0]; }

// An index below the first case means the first, above the last the last.
V select(const Emission& m) {
  V chosen = m.x[1];
  for (std::size_t i = 2; i < m.x.size(); ++i) {
    const V here = m.dtype() == Dtype::bool_
                       ? m.x[0]
                       : m.b.CreateICmpSGE(m.x[0], number(m, static_cast<double>(i - 1)));
    chosen = m.b.CreateSelect(here, m.x[i], chosen);
  }
  return chosen;
}

V less(const Emission& m, V x, V y) {
  if (m.floating()) return m.b.CreateFCmpOLT(x, y);
  return m.is_signed() ? m.b.CreateICmpSLT(x, y) : m.b.CreateICmpULT(x, y);
}
// The bound where x is outside or the bound is NaN; x may be NaN and stays it.
V limited(const Emission& m, V x, V bound, V outside) {
  if (m.floating()) outside = m.b.CreateOr(m.b.CreateFCmpUNO(bound, bound), outside);
  return m.b.CreateSelect(outside, bound, x);
}
V clamp(const Emission& m) {
  const V low = m.x[0], high = m.x[2];
  const V x = limited(m, m.x[1], low, less(m, m.x[1], low));
  return limited(m, x, high, less(m, high, x));
}

}  // namespace

std::span<const RuleRow> choice_rules() {
  constexpr auto exact = Rounding::exact;
  static constexpr RuleRow rows[] = {{&select_n_p, select, exact},    {&clamp_p, clamp, exact},
                                     {&stop_gradient_p, same, exact}, {&copy_p, same, exact},
                                     {&name_p, same, exact},          {&device_put_p, same, exact}};
  return rows;
}

}  // namespace reprise::codegen
