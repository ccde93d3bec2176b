#include "plan/relay.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::plan {

bool keeps_to_slices(const Ints& sizes, const Ints& strides, std::int64_t offset,
                     std::int64_t slices, std::int64_t block) {
  std::int64_t left = slices, last = offset;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0 || strides[d] < 0) return false;
    if (left % sizes[d] == 0) {  // all of this loop tells slices apart
      left /= sizes[d];
      if (sizes[d] > 1 && strides[d] != block * left) return false;
    } else {  // some of it, or none
      if (sizes[d] % left != 0) return false;
      const std::int64_t within = sizes[d] / left;
      if (left > 1 && strides[d] * within != block) return false;
      last += (within - 1) * strides[d];
      left = 1;
    }
  }
  return left == 1 && offset >= 0 && last < block;
}

SliceSchedule slice_schedule(const Schedule& s, const RelayStep& relay) {
  SliceSchedule out;
  std::unordered_map<Var, Var> number_of;
  const auto is_passed = [&](Var v) {
    return std::find(relay.passed.begin(), relay.passed.end(), v) != relay.passed.end();
  };
  const auto number = [&](Var root) {
    const auto [found, is_new] = number_of.emplace(root, static_cast<Var>(out.roots.size()));
    if (is_new) {
      const Type& type = s.types[static_cast<std::size_t>(root)];
      out.roots.push_back(root);
      out.schedule.types.push_back(is_passed(root) ? Type{type.dtype, {type.size() / relay.slices}}
                                                   : type);
    }
    return found->second;
  };
  for (Step step : relay.steps) {
    if (auto* k = std::get_if<Kernel>(&step.what)) {
      for (Load& l : k->loads) {
        if (l.source == Source::memory) l.root = number(l.root);
      }
      for (Store& x : k->stores) x.root = number(x.root);
    }
    for (Var& v : step.reads) v = number(v);
    for (Var& v : step.writes) v = number(v);
    for (Var v : step.writes) {
      if (!is_passed(out.roots[static_cast<std::size_t>(v)]))
        out.schedule.outputs.push_back(
            dense_view(v, out.schedule.types[static_cast<std::size_t>(v)].shape));
    }
    out.schedule.steps.push_back(std::move(step));
  }
  out.schedule.program = std::make_shared<const Program>();
  out.schedule.on_host.assign(out.schedule.types.size(), false);
  return out;
}

}  // namespace reprise::plan
