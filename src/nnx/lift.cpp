#include "nnx/lift.h"

#include "reprise/errors.h"
#include "reprise/program.h"

#include <unordered_set>

namespace reprise::nnx::detail {
namespace {

bool same_array(const Array& a, const Array& b) {
  return a.defined() && b.defined() && reprise::detail::is_same_value(a, b);
}

}  // namespace

// Puts values into slots; gives back what they held at the end.
class Lift::Swap {
 public:
  Swap(Target& target, const std::vector<Slot>& slots, const Arrays& values) : target_(target) {
    const std::uint64_t trace = reprise::detail::current_trace();
    saved_.reserve(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Slot& slot = slots[i];
      saved_.push_back({slot, slot.value(), slot.box ? slot.box->trace : 0});
      if (slot.box) {
        slot.box->value = values[i];
        slot.box->trace = trace;
      } else {
        *slot.array = values[i];
      }
    }
  }
  ~Swap() {
    // Array members are looked up again: the function may have removed the modules that had them.
    std::unordered_set<const Array*> there;
    for (const Slot& slot : slots_of(target_.running().fields.list())) {
      if (!slot.box) there.insert(slot.array);
    }
    for (const Saved& s : saved_) {
      if (s.slot.box) {
        s.slot.box->value = s.value;
        s.slot.box->trace = s.trace;
      } else if (there.count(s.slot.array) != 0) {
        *s.slot.array = s.value;
      }
    }
  }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  struct Saved {
    Slot slot;
    Array value;
    std::uint64_t trace;
  };
  Target& target_;
  std::vector<Saved> saved_;
};

Lift::Lift(Target& target) : target_(target) {
  Roots roots = target.arguments();
  arguments_ = roots.local.size();
  local_ = roots.local;
  inputs_ = slots_of(std::move(roots.fields.list()), &description_);
  description_ += target.signature();
}

std::vector<std::size_t> Lift::roots() const {
  std::vector<std::size_t> all;
  for (const Slot& slot : inputs_) all.push_back(root_of(slot));
  return all;
}

Leaf Lift::leaf(std::size_t input) const {
  Leaf leaf = inputs_[input].leaf();
  leaf.path.erase(leaf.path.begin());
  return leaf;
}

Arrays Lift::values() const {
  Arrays values;
  for (const Slot& slot : inputs_) values.push_back(slot.value());
  return values;
}

reprise::detail::Callee Lift::callee(const std::vector<std::string>& names) {
  reprise::detail::Callee callee;
  callee.run = [this](const Arrays& values) { return run(values); };
  callee.at = target_.at;
  callee.identity = target_.identity;
  for (const Slot& slot : inputs_) {
    const std::size_t root = root_of(slot);
    std::string name = root < names.size() && !names[root].empty()
                           ? names[root]
                           : "args[" + std::to_string(root) + "]";
    for (std::size_t i = 1; i < slot.path.size(); ++i) {
      const Key& key = slot.path[i];
      name += key.is_name() ? "." + key.name() : "[" + to_string(key) + "]";
    }
    callee.arg_names.push_back(std::move(name));
  }
  return callee;
}

Arrays Lift::run(const Arrays& values) {
  std::string text;
  const std::vector<Slot> slots = slots_of(std::move(target_.begin_run().fields.list()), &text);
  const Swap swap(target_, slots, values);
  target_.run();
  find_outputs(values, target_.running(), text);
  Arrays out;
  for (const Output& o : outputs_) out.push_back(o.slot.value());
  return out;
}

void Lift::find_outputs(const Arrays& values, const Roots& after, const std::string& text_before) {
  outputs_.clear();
  std::unordered_map<const Box*, std::size_t> input_of;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].box) input_of.emplace(inputs_[i].box.get(), i);
  }
  auto replaced = [&](const Slot& slot) -> std::optional<std::size_t> {
    const auto it = input_of.find(slot.box.get());
    return slot.box && it != input_of.end() ? std::optional(it->second) : std::nullopt;
  };
  std::unordered_set<const Box*> in_result;
  for (const Slot& slot : slots_of(std::move(target_.result().fields.list()))) {
    outputs_.push_back({slot, true, root_of(slot), replaced(slot)});
    if (slot.box) in_result.insert(slot.box.get());
  }
  std::string text;
  const std::vector<Slot> slots = slots_of(after.fields.list(), &text);
  changed_structure_ = text != text_before;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.box) {
      const auto input = replaced(slot);
      if (in_result.count(slot.box.get()) != 0 ||
          (input && same_array(slot.box->value, values[*input])))
        continue;
      outputs_.push_back({slot, false, root_of(slot), input});
    } else if (!after.local[root_of(slot)]) {
      // Same structure: the same array has the same number.
      const auto input = changed_structure_ ? std::nullopt : std::optional(i);
      if (input && same_array(*slot.array, values[i])) continue;
      outputs_.push_back({slot, false, root_of(slot), input});
    }
  }
}

void Lift::release(const std::vector<std::size_t>& inputs) {
  if (inputs.empty()) return;
  target_.end_run();
  for (std::size_t i : inputs) {
    if (inputs_[i].box) {
      inputs_[i].box->value = {};
    } else {
      *inputs_[i].array = {};
    }
  }
}

void Lift::finish(const Arrays& values) {
  const std::uint64_t trace = reprise::detail::current_trace();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Slot& slot = outputs_[i].slot;
    if (slot.box) {
      slot.box->value = values[i];
      slot.box->trace = trace;
    } else {
      *slot.array = values[i];
    }
  }
}

void Lift::assume_outputs(const std::vector<Output>& like) {
  const std::vector<Slot> result = slots_of(std::move(target_.result().fields.list()));
  std::size_t next = 0;
  outputs_.clear();
  for (const Output& o : like) {
    outputs_.push_back(o);
    outputs_.back().slot = o.is_result ? result[next++] : inputs_[*o.input];
  }
}

}  // namespace reprise::nnx::detail
