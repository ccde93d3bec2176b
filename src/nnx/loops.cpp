#include "reprise/nnx/loops.h"

#include "nnx/lift.h"
#include "reprise/errors.h"

#include <algorithm>

namespace reprise::nnx::detail {
namespace {

using OptionalAxis = std::optional<std::int64_t>;

const Axis& axis_for(const char* op, const char* what, const Axes& axes, std::size_t i,
                     std::size_t count) {
  if (axes.size() == 1) return axes[0];
  if (axes.size() != count) {
    fail<TypeError>(op, ": ", what, " must have one entry for all or one each, got ", axes.size(),
                    " for ", count);
  }
  return axes[i];
}

// What an axis specification says about one leaf.
StateAxis axis_of(const char* op, const Axis& axis, const Leaf& leaf) {
  if (const auto* simple = std::get_if<StateAxis>(&axis.value())) return *simple;
  for (const StateAxes::Rule& rule : std::get<StateAxes>(axis.value()).rules()) {
    if (rule.filter(leaf)) return rule.axis;
  }
  fail_with_hint<TypeError>("add a rule for rp::ellipsis, which takes all the others", op,
                            ": StateAxes must cover every leaf, got ", to_string(leaf.path),
                            " that no rule takes");
}

bool is_carry(const StateAxis& a) { return std::holds_alternative<CarryMark>(a); }
OptionalAxis along(const StateAxis& a) {
  const auto* axis = std::get_if<std::int64_t>(&a);
  return axis == nullptr ? std::nullopt : OptionalAxis(*axis);
}

std::size_t result_parts(Target& target) { return target.result().local.size(); }

// The axis of an output that is no result: that of the variable it replaces, or of its argument.
StateAxis axis_of_state(const char* op, const Lift& lift, const Lift::Output& o,
                        const Axes& in_axes, const std::vector<StateAxis>& inputs) {
  if (o.input) return inputs[*o.input];
  Leaf leaf = o.slot.leaf();
  leaf.path.erase(leaf.path.begin());
  return axis_of(op, axis_for(op, "in_axes", in_axes, o.root, lift.arguments()), leaf);
}
std::vector<StateAxis> input_axes(const char* op, const Lift& lift, const Axes& axes) {
  std::vector<StateAxis> all;
  for (std::size_t i = 0; i < lift.inputs().size(); ++i) {
    all.push_back(
        axis_of(op, axis_for(op, "in_axes", axes, lift.root(i), lift.arguments()), lift.leaf(i)));
  }
  return all;
}
StateAxis result_axis(const char* op, const Axes& axes, const Lift::Output& o, std::size_t parts) {
  Leaf leaf = o.slot.leaf();
  leaf.path.erase(leaf.path.begin());
  return axis_of(op, axis_for(op, "out_axes", axes, o.root, parts), leaf);
}

}  // namespace

void run_vmap(Target& target, const VmapOptions& options) {
  const AtUser scope(target.at);
  Lift lift(target);
  const std::vector<StateAxis> inputs = input_axes("vmap", lift, options.in_axes);
  std::vector<OptionalAxis> in, out;
  for (const StateAxis& a : inputs) {
    if (is_carry(a)) fail<TypeError>("vmap: there is no carry, got nnx::Carry in in_axes");
    in.push_back(along(a));
  }
  reprise::detail::Callee callee = lift.callee();
  // The outputs are known when the function has run; the core reads `out` after that.
  callee.run = [&](const Arrays& values) {
    Arrays results = lift.run(values);
    out.clear();
    const std::size_t parts = result_parts(target);
    for (const Lift::Output& o : lift.outputs()) {
      const StateAxis a = o.is_result ? result_axis("vmap", options.out_axes, o, parts)
                                      : axis_of_state("vmap", lift, o, options.in_axes, inputs);
      if (is_carry(a)) fail<TypeError>("vmap: there is no carry, got nnx::Carry in out_axes");
      out.push_back(along(a));
    }
    return results;
  };
  lift.finish(reprise::detail::vmap(callee, lift.values(), in, out, options.axis_size));
}

namespace {

// One scan: which inputs and outputs are carried, which go along an axis.
class ScanCall {
 public:
  ScanCall(Target& target, const ScanOptions& options) : lift_(target), options_(options) {
    if (options.in_axes.size() != lift_.arguments()) {
      fail<TypeError>("scan: in_axes must have one entry for each argument, got ",
                      options.in_axes.size(), " for ", lift_.arguments());
    }
    inputs_ = input_axes("scan", lift_, options.in_axes);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (is_carry(inputs_[i])) {
        carried_.push_back(i);
      } else if (along(inputs_[i])) {
        scanned_.push_back(i);
      }
    }
  }

  void run() {
    const Arrays values = lift_.values();
    Arrays init, xs;
    for (std::size_t i : carried_) init.push_back(values[i]);
    for (std::size_t i : scanned_) xs.push_back(leading(values[i], *along(inputs_[i]), i));
    reprise::detail::Callee body = lift_.callee();
    body.run = [&](const Arrays& given) { return step(values, given); };
    const Arrays out = reprise::detail::scan(body, init, xs,
                                             {.length = options_.length,
                                              .reverse = options_.reverse,
                                              .unroll = options_.unroll,
                                              .checkpoints = options_.checkpoints,
                                              .checkpoint_bytes = options_.checkpoint_bytes,
                                              .disk_checkpoints = options_.disk_checkpoints});
    finish(out);
  }

 private:
  Array leading(const Array& value, std::int64_t axis, std::size_t input) const {
    const std::int64_t n = value.ndim();
    if (axis >= n || axis < -n) {
      fail<TypeError>("scan: the array has no such axis, got axis ", axis, " of ", value.type(),
                      " at ", to_string(lift_.leaf(input).path));
    }
    return axis == 0 ? value : moveaxis(value, axis, 0);
  }

  // (carry, slices) -> (carry, slices of results)
  Arrays step(const Arrays& outside, const Arrays& given) {
    Arrays inside = outside;
    std::size_t next = 0;
    for (std::size_t i : carried_) inside[i] = given[next++];
    for (std::size_t i : scanned_) inside[i] = given[next++];
    const Arrays out = lift_.run(inside);
    sort_outputs();
    Arrays result;
    for (const auto& from : carry_from_)
      result.push_back(from ? out[*from] : inside[carried_[result.size()]]);
    for (const auto& [o, axis] : stacked_) result.push_back(out[o]);
    return result;
  }

  void sort_outputs() {
    carry_from_.assign(carried_.size(), std::nullopt);
    stacked_.clear();
    std::vector<std::size_t> results;  // those that are the carry
    const std::size_t parts = result_parts(lift_.target());
    const std::vector<Lift::Output>& outputs = lift_.outputs();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const StateAxis a = outputs[o].is_result
                              ? result_axis("scan", options_.out_axes, outputs[o], parts)
                              : axis_of_state("scan", lift_, outputs[o], options_.in_axes, inputs_);
      if (const auto axis = along(a)) {
        stacked_.emplace_back(o, *axis);
      } else if (!is_carry(a)) {
        not_looped(outputs[o]);
      } else if (outputs[o].is_result) {
        results.push_back(o);
      } else {
        set_carry(outputs[o], o);
      }
    }
    place_results(results);
  }
  [[noreturn]] void not_looped(const Lift::Output& o) const {
    if (o.is_result)
      fail<TypeError>(
          "scan: a result must be nnx::Carry or go along an axis, got none in out_axes");
    fail_with_hint<TypeError>(
        "give the variable an axis, or nnx::Carry, in in_axes",
        "scan: a variable that is the same in all steps cannot be changed, got ",
        to_string(o.slot.path));
  }
  void set_carry(const Lift::Output& output, std::size_t o) {
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (output.input && carried_[c] == *output.input) {
        carry_from_[c] = o;
        return;
      }
    }
    fail<TypeError>("scan: a carry must keep its structure, got a new variable at ",
                    to_string(output.slot.path));
  }
  // The carry that is returned: variables go to their own places, other arrays to those of the
  // carry argument, in order.
  void place_results(const std::vector<std::size_t>& results) {
    std::vector<std::size_t> plain;
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (!lift_.inputs()[carried_[c]].box) plain.push_back(c);
    }
    std::size_t next = 0;
    for (std::size_t o : results) {
      const Lift::Output& output = lift_.outputs()[o];
      if (output.slot.box) {
        set_carry(output, o);
      } else if (next < plain.size()) {
        carry_from_[plain[next++]] = o;
      } else {
        ++next;
      }
    }
    if (next != plain.size()) {
      fail<TypeError>(
          "scan: the carry that is returned must have the structure of the carry that is passed, "
          "got ",
          next, " arrays for ", plain.size());
    }
  }

  void finish(const Arrays& out) {
    Arrays values(lift_.outputs().size());
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (carry_from_[c]) values[*carry_from_[c]] = out[c];
    }
    for (std::size_t k = 0; k < stacked_.size(); ++k) {
      const auto& [o, axis] = stacked_[k];
      const Array& y = out[carried_.size() + k];
      values[o] = axis == 0 ? y : moveaxis(y, 0, axis);
    }
    lift_.finish(values);
  }

  Lift lift_;
  const ScanOptions& options_;
  std::vector<StateAxis> inputs_;
  std::vector<std::size_t> carried_, scanned_;                 // inputs
  std::vector<std::optional<std::size_t>> carry_from_;         // the output of each carried input
  std::vector<std::pair<std::size_t, std::int64_t>> stacked_;  // outputs and their axes
};

}  // namespace

void run_scan(Target& target, const ScanOptions& options) {
  const AtUser scope(target.at);
  ScanCall(target, options).run();
}

}  // namespace reprise::nnx::detail
