// Library functions that JAX compiles as a unit: one jit equation while tracing, plain operations
// otherwise.
#pragma once

#include "base/location.h"
#include "control/call.h"

namespace reprise {

inline const Location& later(const Operand& x, const Operand& y) {
  return y.at.line > x.at.line ? y.at : x.at;
}

template <class F>
Array unit(const char* name, const Operand& x, F f) {
  const AtUser at(x.at);
  return jit_call1(name, [&](const Arrays& a) { return Arrays{f(a[0])}; }, {x.array});
}
template <class F>
Array unit(const char* name, const Operand& x, const Operand& y, F f) {
  const AtUser at(later(x, y));
  return jit_call1(name, [&](const Arrays& a) { return Arrays{f(a[0], a[1])}; },
                   {x.array, y.array});
}

}  // namespace reprise
