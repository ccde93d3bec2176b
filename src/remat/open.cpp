#include "remat/open.h"

#include "remat/checkpoint.h"
#include "transform/rewrite.h"

namespace reprise {
namespace {

const char* body_of_checkpoint(const Equation& e) { return e.prim == &remat_p ? "jaxpr" : nullptr; }

const char* body_of_mergeable(const Equation& e) {
  const char* body = body_of_checkpoint(e);
  const bool* prevent = body == nullptr ? nullptr : std::get_if<bool>(e.params.find("prevent_cse"));
  return prevent != nullptr && !*prevent ? body : nullptr;
}

}  // namespace

Program open_checkpoints(const Program& p) {
  return open_calls(p, {"open", open_checkpoints, body_of_checkpoint});
}
Program open_mergeable_checkpoints(const Program& p) {
  return open_calls(p, {"open_mergeable", open_mergeable_checkpoints, body_of_mergeable});
}

}  // namespace reprise
