#include "transform/inline.h"

#include "transform/rewrite.h"

namespace reprise {

Program inline_calls(const Program& p) {
  const auto opened = [](const Equation& e) {
    return e.params.find(contracts) == nullptr ? e.prim->inlined_body : nullptr;
  };
  return open_calls(p, {"inline_calls", inline_calls, opened});
}

}  // namespace reprise
