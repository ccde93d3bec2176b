// Calls of named functions inside programs: jit[name=f jaxpr={...}].
#pragma once

#include "program/trace.h"

#include <string>

namespace reprise {

// While tracing: traces f and records one jit equation. Otherwise: simply runs f. The same name
// with an equal program is the same Program object, so the printer shares it.
Arrays jit_call(const std::string& name, const FlatFunction& f, const Arrays& args);
inline Array jit_call1(const std::string& name, const FlatFunction& f, const Arrays& args) {
  return jit_call(name, f, args)[0];
}
// The same with contracted products (control/contract.h), evaluated as a whole when nothing is
// traced.
Array contracting_call(const std::string& name, const FlatFunction& f, const Arrays& args);

}  // namespace reprise
