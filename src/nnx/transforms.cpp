#include "reprise/nnx/transforms.h"

#include "nnx/lift.h"
#include "reprise/errors.h"

#include <algorithm>

namespace reprise::nnx::detail {

void run_remat(Target& target, const RematOptions& options) {
  Lift lift(target);
  reprise::detail::Callee callee = lift.callee();
  callee.identity += lift.description();
  lift.finish(
      reprise::detail::checkpoint(callee, lift.values(), lift.roots(), lift.arguments(), options));
}

// -------------------------------------------------------------------------------------------- grad
struct GradCall::Impl {
  explicit Impl(Target& target) : lift(target) {}
  Lift lift;
  std::vector<std::optional<Array>> grads;  // by input
};

std::vector<GradCall::Choice> choices(const std::vector<std::size_t>& argnums,
                                      const GradOptions& options) {
  std::vector<GradCall::Choice> all;
  for (std::size_t argument : argnums) {
    const auto own = std::find_if(options.diff_states.begin(), options.diff_states.end(),
                                  [&](const DiffState& d) { return d.argnum == argument; });
    all.push_back({argument, own == options.diff_states.end() ? options.wrt : own->filter});
  }
  for (const DiffState& d : options.diff_states) {
    if (std::find(argnums.begin(), argnums.end(), d.argnum) == argnums.end()) {
      fail<TypeError>("grad: DiffState needs an argument that is differentiated, got argument ",
                      d.argnum);
    }
  }
  return all;
}

GradCall::GradCall(Target& target, const std::vector<Choice>& wrt)
    : impl_(std::make_unique<Impl>(target)) {
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
  const auto g =
      reprise::detail::value_and_grad(lift.callee(), lift.values(), active, /*with_aux=*/true);
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

// --------------------------------------------------------------------------------------------- jit
struct JitRecord {
  std::shared_ptr<const reprise::detail::JitEntry> entry;
  std::vector<Lift::Output> outputs;  // their slots are those of the traced call
  std::vector<std::size_t> donated;   // inputs whose memory the program may take over
  bool reusable = false;
};
struct JitCall::Impl {
  Impl(Target& target, const JitOptions& o) : lift(target), options(o), values(lift.values()) {
    key = lift.description();
    reprise::detail::append_types(key, values);
  }
  // Of a donated argument: its plain arrays, and the variables that get new values.
  std::vector<std::size_t> donated_inputs() const {
    std::vector<bool> replaced(lift.inputs().size());
    for (const Lift::Output& o : lift.outputs()) {
      if (o.input) replaced[*o.input] = true;
    }
    const int n = static_cast<int>(lift.arguments());
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < replaced.size(); ++i) {
      const int argument = static_cast<int>(lift.root(i));
      const bool donated = std::any_of(options.donate_argnums.begin(), options.donate_argnums.end(),
                                       [&](int k) { return (k < 0 ? k + n : k) == argument; });
      if (donated && (replaced[i] || lift.is_local(i))) chosen.push_back(i);
    }
    return chosen;
  }
  Lift lift;
  const JitOptions& options;
  std::string key;
  Arrays values;
};

JitCall::JitCall(Target& target, const JitOptions& options)
    : impl_(std::make_unique<Impl>(target, options)) {}
JitCall::~JitCall() = default;
const std::string& JitCall::key() const { return impl_->key; }

std::shared_ptr<const JitRecord> JitCall::trace() {
  Lift& lift = impl_->lift;
  auto record = std::make_shared<JitRecord>();
  std::vector<std::size_t> argument_of = lift.roots();
  reprise::detail::Callee callee = lift.callee();
  callee.name = impl_->options.name;
  // The core reads argument_of when the function has run: what is not donated belongs to no
  // argument.
  callee.run = [&](const Arrays& values) {
    Arrays out = lift.run(values);
    record->donated = impl_->donated_inputs();
    std::vector<std::size_t> donated(argument_of.size(), lift.arguments());
    for (std::size_t i : record->donated) donated[i] = argument_of[i];
    argument_of = std::move(donated);
    return out;
  };
  record->entry = reprise::detail::trace_jit(callee, impl_->values, impl_->options, argument_of,
                                             lift.arguments());
  record->outputs = lift.outputs();
  // Another call must find the places of its own results: in the result, or in variables it passes.
  const bool same_places = std::all_of(
      record->outputs.begin(), record->outputs.end(),
      [](const Lift::Output& o) { return o.is_result ? !o.input : o.input.has_value(); });
  record->reusable =
      reprise::detail::shareable(*record->entry) && same_places && !lift.changed_structure();
  for (Lift::Output& o : record->outputs) o.slot = {};
  return record;
}

void JitCall::keep(reprise::detail::JitCache& cache, reprise::detail::JitCache::Made made) const {
  cache.add(impl_->key, impl_->values, impl_->options.name, std::move(made));
}

void JitCall::run(const JitRecord& record, bool just_traced) {
  Lift& lift = impl_->lift;
  if (!just_traced) lift.assume_outputs(record.outputs);
  lift.release(record.donated);
  lift.finish(reprise::detail::call_jit(lift.target().at, impl_->options.name,
                                        std::move(impl_->values), *record.entry));
}

bool reusable(const JitRecord& record) { return record.reusable; }
const std::shared_ptr<const reprise::detail::JitEntry>& entry_of(const JitRecord& record) {
  return record.entry;
}

}  // namespace reprise::nnx::detail
