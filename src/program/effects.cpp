#include "program/effects.h"

namespace reprise {
namespace {

void add(Effect& all, const Effect& one) {
  all.is_ordered |= one.is_ordered;
  all.is_once |= one.is_once;
  all.is_distinct |= one.is_distinct;
  all.is_kept |= one.is_kept;
  all.is_shared |= one.is_shared;
}

}  // namespace

Effect effects_of(const Program& p) {
  return *derive<Effect>(p, "effects", [&] {
    Effect all;
    for (const Equation& e : p.eqns) add(all, effect_of(e));
    return all;
  });
}

Effect effect_of(const Equation& e) {
  Effect all = e.prim->effect;
  for_each_program(e.params, [&](const ProgramPtr& inside) { add(all, effects_of(*inside)); });
  return all;
}

bool does_something(const Equation& e) { return !e.out.empty() || effect_of(e).is_kept; }

}  // namespace reprise
