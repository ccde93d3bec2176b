#include "remat/set_policy.h"

#include "control/records.h"
#include "ops/records.h"
#include "remat/check_names.h"
#include "remat/checkpoint.h"

#include <functional>
#include <map>

namespace reprise {
namespace {

// Changes the checkpoint equations of a program, the inner ones first. A body that is used twice
// stays one object.
class CheckpointRewriter {
 public:
  explicit CheckpointRewriter(std::function<void(Equation&)> change) : change_(std::move(change)) {}

  ProgramPtr operator()(const ProgramPtr& program) {
    if (const auto it = done_.find(program.get()); it != done_.end()) return it->second;
    auto copy = std::make_shared<Program>(*program);
    for (Equation& e : copy->eqns) {
      e.params = rewritten(e.params);
      if (e.prim == &remat_p) change_(e);
    }
    return done_[program.get()] = std::move(copy);
  }

 private:
  Params rewritten(const Params& params) {
    Params result = params;
    for (const Param& param : params.items()) {
      if (const auto* one = std::get_if<ProgramPtr>(&param.value)) {
        result = result.with(param.key, (*this)(*one));
      } else if (const auto* several = std::get_if<Programs>(&param.value)) {
        Programs list;
        for (const ProgramPtr& p : *several) list.push_back((*this)(p));
        result = result.with(param.key, std::move(list));
      }
    }
    return result;
  }

  std::function<void(Equation&)> change_;
  std::map<const Program*, ProgramPtr> done_;
};

}  // namespace

bool has_checkpoints(const Program& program) {
  for (const Equation& e : program.eqns) {
    bool found = e.prim == &remat_p;
    for_each_program(e.params,
                     [&](const ProgramPtr& body) { found = found || has_checkpoints(*body); });
    if (found) return true;
  }
  return false;
}

std::set<std::string> checkpoint_names(const Program& program) {
  std::set<std::string> names;
  for (const Equation& e : program.eqns) {
    if (e.prim == &name_p) names.insert(e.params.get<std::string>("name"));
    for_each_program(e.params,
                     [&](const ProgramPtr& body) { names.merge(checkpoint_names(*body)); });
  }
  return names;
}

ProgramPtr without_checkpoints(const ProgramPtr& program) {
  return CheckpointRewriter([](Equation& e) {
    e.prim = &jit_p;
    e.params = {{"name", std::string("checkpoint")}, {"jaxpr", e.params.get<ProgramPtr>("jaxpr")}};
  })(program);
}

ProgramPtr with_policy(const ProgramPtr& program, const Policy& policy) {
  check_names(policy, *program, false);
  return CheckpointRewriter([&](Equation& e) {
    e.params = e.params.with("policy", OpaquePtr(std::make_shared<const PolicyParam>(policy)));
  })(program);
}

}  // namespace reprise
