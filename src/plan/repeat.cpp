#include "plan/repeat.h"

#include "ops/records.h"

namespace reprise::plan {

bool may_repeat(const Equation& e) {
  if (e.prim == &reduce_precision_p) return false;
  return e.prim->kind == Kind::elementwise || e.prim->kind == Kind::reduce || e.prim->kind == Kind::shape ||
         e.prim->kind == Kind::constant;
}

}  // namespace reprise::plan
