#include "reprise/nnx/transforms.h"

#include <algorithm>

#include "nnx/lift.h"
#include "reprise/errors.h"

namespace reprise::nnx::detail {

void run_remat(Target& target, const RematOptions& options) {
  Lift lift(target);
  reprise::detail::Callee callee = lift.callee();
  callee.identity += lift.description();
  lift.finish(reprise::detail::checkpoint(callee, lift.values(), lift.roots(), lift.arguments(), options));
}

// --------------------------------------------------------------------------------------------- grad
struct GradCall::Impl {
  explicit Impl(Target& target) : lift(target) {}
  Lift lift;
  std::vector<std::optional<Array>> grads;  // by input
};

std::vector<GradCall::Choice> choices(const std::vector<std::size_t>& argnums, const GradOptions& options) {
  std::vector<GradCall::Choice> all;
  for (std::size_t argument : argnums) {
    const auto own = std::find_if(options.diff_states.begin(), options.diff_states.end(),
                                  [&](const DiffState& d) { return d.argnum == argument; });
    all.push_back({argument, own == options.diff_states.end() ? options.wrt : own->filter});
  }
  for (const DiffState& d : options.diff_states) {
    if (std::find(argnums.begin(), argnums.end(), d.argnum) == argnums.end()) {
      fail<TypeError>("grad: DiffState needs an argument that is differentiated, got argument ", d.argnum);
    }
  }
  return all;
}

GradCall::GradCall(Target& target, const std::vector<Choice>& wrt) : impl_(std::make_unique<Impl>(target)) {
  Lift& lift = impl_->lift;
  std::vector<bool> active(lift.inputs().size());
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Leaf leaf = lift.leaf(i);
    for (const Choice& choice : wrt) {
      // Arrays that are no variables, and bare variables, were chosen by their number.
      const bool chosen = leaf.kind == nullptr || leaf.path.empty() || choice.filter(leaf);
      active[i] = active[i] || (lift.root(i) == choice.argument && chosen);
    }
  }
  const auto g = reprise::detail::value_and_grad(lift.callee(), lift.values(), active, /*with_aux=*/true);
  lift.finish(g.out);
  impl_->grads.resize(active.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (active[i]) impl_->grads[i] = g.grads.at(next++);
  }
}
GradCall::~GradCall() = default;

State GradCall::state(std::size_t argument) const {
  std::vector<Leaf> leaves;
  for (std::size_t i = 0; i < impl_->grads.size(); ++i) {
    if (!impl_->grads[i] || impl_->lift.root(i) != argument) continue;
    leaves.push_back(impl_->lift.leaf(i));
    leaves.back().value = *impl_->grads[i];
  }
  return State(std::move(leaves));
}
Arrays GradCall::leaves(std::size_t argument) const {
  Arrays all;
  for (std::size_t i = 0; i < impl_->grads.size(); ++i) {
    if (impl_->grads[i] && impl_->lift.root(i) == argument) all.push_back(*impl_->grads[i]);
  }
  return all;
}
void GradCall::replace(std::size_t argument, Fields& copy) const {
  const Arrays grads = leaves(argument);
  std::size_t next = 0;
  for (const Slot& slot : slots_of(copy.list())) *slot.array = grads.at(next++);
}

// ---------------------------------------------------------------------------------------------- jit
struct JitRecord {
  std::shared_ptr<const reprise::detail::JitEntry> entry;
  std::vector<Lift::Output> outputs;  // their slots are those of the traced call
  bool reusable = false;
};
struct JitCall::Impl {
  Impl(Target& target, std::string name_) : lift(target), name(std::move(name_)), values(lift.values()) {
    key = lift.description();
    reprise::detail::append_types(key, values);
  }
  Lift lift;
  std::string name, key;
  Arrays values;
};

JitCall::JitCall(Target& target, const std::string& name) : impl_(std::make_unique<Impl>(target, name)) {}
JitCall::~JitCall() = default;
const std::string& JitCall::key() const { return impl_->key; }

std::shared_ptr<const JitRecord> JitCall::trace() {
  Lift& lift = impl_->lift;
  reprise::detail::Callee callee = lift.callee();
  callee.name = impl_->name;
  auto record = std::make_shared<JitRecord>();
  record->entry = reprise::detail::trace_jit(callee, impl_->values, {}, {}, 0);
  record->outputs = lift.outputs();
  // Another call must find the places of its own results: in the result, or in variables it passes.
  const bool same_places = std::all_of(record->outputs.begin(), record->outputs.end(), [](const Lift::Output& o) {
    return o.is_result ? !o.input : o.input.has_value();
  });
  record->reusable = reprise::detail::shareable(*record->entry) && same_places && !lift.changed_structure();
  for (Lift::Output& o : record->outputs) o.slot = {};
  return record;
}

void JitCall::run(const JitRecord& record, bool just_traced) {
  if (!just_traced) impl_->lift.assume_outputs(record.outputs);
  impl_->lift.finish(
      reprise::detail::call_jit(impl_->lift.target().at, impl_->name, impl_->values, *record.entry));
}

bool reusable(const JitRecord& record) { return record.reusable; }
const std::shared_ptr<const reprise::detail::JitEntry>& entry_of(const JitRecord& record) { return record.entry; }

}  // namespace reprise::nnx::detail
