#include "remat/open.h"

#include "remat/checkpoint.h"
#include "transform/rewrite.h"

namespace reprise {
namespace {

bool may_merge(const Equation& e) {
  const bool* prevent = std::get_if<bool>(e.params.find("prevent_cse"));
  return prevent != nullptr && !*prevent;
}

Program open_some(const Program& p, const char* pass, Program (*self)(const Program&), bool (*wanted)(const Equation&)) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, pass, self);
    if (e.prim != &remat_p || !wanted(e)) {
      rewrite.append(std::move(now));
      continue;
    }
    const std::vector<Atom> out = rewrite.splice(*now.params.get<ProgramPtr>("jaxpr"), now.in, e.phase);
    for (std::size_t k = 0; k < e.out.size(); ++k) rewrite.replace(e.out[k], out[k]);
  }
  return rewrite.finish();
}

}  // namespace

Program open_checkpoints(const Program& p) {
  return open_some(p, "open", open_checkpoints, [](const Equation&) { return true; });
}
Program open_mergeable_checkpoints(const Program& p) {
  return open_some(p, "open_mergeable", open_mergeable_checkpoints, may_merge);
}

}  // namespace reprise
