#include "transform/inline.h"

#include "transform/rewrite.h"

namespace reprise {

Program inline_calls(const Program& p) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, "inline_calls", inline_calls);
    if (e.prim->inlined_body == nullptr || e.params.find(contracts) != nullptr) {
      rewrite.append(std::move(now));
      continue;
    }
    const auto& body = now.params.get<ProgramPtr>(e.prim->inlined_body);
    const std::vector<Atom> out = rewrite.splice(*body, now.in, e.phase);
    for (std::size_t k = 0; k < e.out.size(); ++k) rewrite.replace(e.out[k], out[k]);
  }
  return rewrite.finish();
}

}  // namespace reprise
