#include "api/engine.h"

#include "program/evaluate.h"
#include "runtime/cpu_engine.h"

namespace reprise {

const Engine& engine() { return cpu_engine(); }

Arrays evaluate(const Primitive& prim, const Arrays& x, const Params& params, const Types& out) {
  return engine().evaluate(prim, x, params, out);
}

}  // namespace reprise
