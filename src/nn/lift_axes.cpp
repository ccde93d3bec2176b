// scan and vmap: variables that are stacked along an axis, keys that are split.
#include "nn/lift.h"
#include "reprise/autodiff.h"
#include "reprise/control.h"
#include "reprise/ops.h"
#include "reprise/random.h"

#include <algorithm>
#include <set>

namespace reprise::nn::detail {

using Axis = std::optional<std::int64_t>;

// ------------------------------------------------------------------------------------------ groups
std::vector<VariableGroup> groups_in(const VariableAxes& axes) {
  std::vector<VariableGroup> groups;
  for (const auto& [filter, axis] : axes) {
    if (axis.goes_in()) groups.push_back({filter, axis.axis()});
  }
  return groups;
}

std::vector<VariableGroup> groups_out(const VariableAxes& axes) {
  std::vector<VariableGroup> groups;
  for (const auto& [filter, axis] : axes) {
    if (axis.comes_out()) groups.push_back({filter, axis.axis()});
  }
  return groups;
}

Filter all_of(const std::vector<VariableGroup>& groups) {
  Filter all = false;
  for (const VariableGroup& group : groups) all = all | group.filter;
  return all;
}

GroupAxis axis_for(const std::vector<VariableGroup>& groups, const std::string& collection) {
  for (const VariableGroup& group : groups) {
    if (group.filter.matches(collection)) return {true, group.axis};
  }
  return {};
}

Dict collections_if(const Dict& tree, const std::function<bool(const std::string&)>& keep) {
  Dict result;
  for (const auto& [collection, node] : tree.items()) {
    if (keep(collection)) result.items()[collection] = node;
  }
  return result;
}

Array axis_to_front(const Array& x, std::int64_t axis) {
  return axis == 0 ? x : moveaxis(x, axis, 0);
}
Array axis_from_front(const Array& x, std::int64_t axis) {
  return axis == 0 ? x : moveaxis(x, 0, axis);
}

namespace {

Dict map_collections(const Dict& tree, const std::vector<VariableGroup>& groups,
                     Array (*move)(const Array&, std::int64_t)) {
  Dict result;
  for (const auto& [collection, node] : tree.items()) {
    const Axis axis = axis_for(groups, collection).axis;
    const Dict& values = std::get<Dict>(node);
    result[collection] =
        axis ? tree_map([&](const Array& x) { return move(x, *axis); }, values) : values;
  }
  return result;
}

}  // namespace

Dict axes_to_front(const Dict& tree, const std::vector<VariableGroup>& groups) {
  return map_collections(tree, groups, axis_to_front);
}
Dict axes_from_front(const Dict& tree, const std::vector<VariableGroup>& groups) {
  return map_collections(tree, groups, axis_from_front);
}

SplitStreams split_streams(const Boundary& boundary, const SplitRngs& rngs, std::int64_t count) {
  SplitStreams result;
  const Dict streams = boundary.streams(true);
  for (const auto& [number, node] : streams.items()) {
    Dict& split = make_dict_at(result.split, {number});
    Dict& shared = make_dict_at(result.shared, {number});
    for (const auto& [stream, key] : std::get<Dict>(node).items()) {
      for (const auto& [filter, is_split] : rngs) {
        if (!filter.matches(stream)) continue;
        if (is_split) {
          split[stream] = random::split(std::get<Array>(key), count);
        } else {
          shared[stream] = std::get<Array>(key);
        }
        break;
      }
    }
  }
  return result;
}

Axis axis_of_argument(const char* op, const Axes& axes, std::size_t i, std::size_t count) {
  if (axes.size() == 1) return axes[0];
  if (axes.size() != count) {
    fail<TypeError>(op, ": in_axes must have one entry for all or one for each argument, got ",
                    axes.size(), " for ", count, " arguments");
  }
  return axes[i];
}

namespace {

Axis axis_of_result(const char* op, const Axes& axes, std::size_t i, std::size_t count) {
  if (axes.size() == 1) return axes[0];
  if (axes.size() != count) {
    fail<TypeError>(
        op, ": out_axes must have one entry for all or one for each array of the result, got ",
        axes.size(), " for ", count, " arrays");
  }
  return axes[i];
}

Dict joined(Dict a, const Dict& b) {
  merge_into(a, b);
  return a;
}

// Puts the arrays of two lists back in the order in which they were sorted apart.
Arrays interleaved(const std::vector<bool>& from_first, const Arrays& first, const Arrays& second) {
  Arrays result;
  std::size_t i = 0, j = 0;
  for (const bool is_first : from_first) result.push_back(is_first ? first[i++] : second[j++]);
  return result;
}

// Arguments that are cut to pieces along an axis (moved to the front), and those that are not.
struct CutArgs {
  std::vector<bool> is_cut;
  Arrays cut, whole;
  std::set<std::int64_t> sizes;
};

void add_argument(CutArgs& args, const char* op, const Array& leaf, Axis axis) {
  args.is_cut.push_back(axis.has_value());
  if (!axis) {
    args.whole.push_back(leaf);
    return;
  }
  if (*axis < -leaf.ndim() || *axis >= leaf.ndim()) {
    fail<TypeError>(op, ": in_axes must name an axis of the argument, got ", *axis, " for ",
                    leaf.type());
  }
  args.sizes.insert(leaf.shape(*axis));
  args.cut.push_back(axis_to_front(leaf, *axis));
}

std::int64_t common_size(const char* op, const char* option, const std::set<std::int64_t>& sizes,
                         const std::optional<std::int64_t>& given) {
  if (sizes.size() > 1) {
    fail<TypeError>(op, ": the arguments must have the same size along their axes, got ",
                    join(sizes, " and "));
  }
  if (given && !sizes.empty() && *sizes.begin() != *given) {
    fail<TypeError>(op, ": ", option, " must be the size of the arguments' axes, got ", *given,
                    " for ", *sizes.begin());
  }
  if (!given && sizes.empty()) {
    fail_with_hint<TypeError>(str("say .", option, " = n"), op,
                              ": no argument is cut to pieces, so ", option, " must be given");
  }
  return given ? *given : *sizes.begin();
}

}  // namespace

// -------------------------------------------------------------------------------------------- scan
namespace {

// A scan over one lifted call: what is constant, carried and stacked.
class LiftedScan {
 public:
  LiftedScan(const LiftScanOptions& options, const Scopes& scopes, const LiftedArgs& args,
             const OnScopes& f)
      : options_(options),
        in_(groups_in(options.variable_axes)),
        out_(groups_out(options.variable_axes)),
        boundary_(scopes, "scan",
                  options.variable_broadcast | options.variable_carry | all_of(out_)),
        f_(f) {
    for (std::size_t i = 0; i < args.leaves.size(); ++i) {
      if (args.argument[i] == 0) {
        carry_.push_back(args.leaves[i]);
      } else {
        const Axis axis =
            axis_of_argument("scan", options.in_axes, args.argument[i] - 1, args.count - 1);
        add_argument(xs_, "scan", args.leaves[i], axis);
      }
    }
    length_ = common_size("scan", "length", xs_.sizes, options.length);
    streams_ = split_streams(boundary_, options.split_rngs, length_);
    constant_ = boundary_.variables(options.variable_broadcast);
    carried_ = boundary_.variables(carry_filter());
    const Dict stacked = boundary_.variables(
        all_of(in_) & DenyList(options.variable_broadcast | options.variable_carry));
    stacked_ = axes_to_front(stacked, in_);
  }

  Arrays run() {
    if (options_.check_constancy_invariants) {
      find_constants();
      boundary_.count_from_here();
    }
    const auto [carry, ys] = reprise::scan(
        [this](Carry c, Slice s) {
          Step step = run_step(c, s);
          return std::pair{std::pair{std::move(step.carried), std::move(step.carry)},
                           std::pair{std::move(step.stacked), std::move(step.ys)}};
        },
        Carry{carried_, carry_}, Slice{stacked_, {streams_.split, xs_.cut}},
        {.length = length_,
         .reverse = options_.reverse,
         .unroll = options_.unroll,
         .checkpoints = options_.checkpoints,
         .checkpoint_bytes = options_.checkpoint_bytes,
         .disk_checkpoints = options_.disk_checkpoints});
    boundary_.write_back(constant_);
    boundary_.write_back(carry.first);
    boundary_.write_back(axes_from_front(ys.first, out_));
    Arrays out = carry.second;
    std::size_t next_stacked = 0, next_constant = 0;
    for (const Axis& axis : y_axes_) {
      out.push_back(axis ? axis_from_front(ys.second[next_stacked++], *axis)
                         : constant_ys_[next_constant++]);
    }
    return out;
  }

 private:
  using Carry = std::pair<Dict, Arrays>;
  using Slice = std::pair<Dict, std::pair<Dict, Arrays>>;
  struct Step {
    Dict constant, carried, stacked;
    Arrays carry, ys, constant_ys;
  };

  Filter carry_filter() const {
    return options_.variable_carry & DenyList(options_.variable_broadcast);
  }

  Step run_step(const Carry& carry, const Slice& slice) {
    const auto& [carried, carry_leaves] = carry;
    const auto& [stacked, rest] = slice;
    const Dict variables = joined(joined(constant_, carried), stacked);
    Arrays leaves = carry_leaves;
    const Arrays xs = interleaved(xs_.is_cut, rest.second, xs_.whole);
    leaves.insert(leaves.end(), xs.begin(), xs.end());
    auto [out, changed] = boundary_.run(variables, joined(streams_.shared, rest.first),
                                        [&](const Scopes& inside) { return f_(inside, leaves); });
    check_carry(out);
    Step step;
    step.constant = collections_if(
        changed, [&](const auto& c) { return options_.variable_broadcast.matches(c); });
    step.carried = joined(
        carried, collections_if(changed, [&](const auto& c) { return carry_filter().matches(c); }));
    check_carried(carried, step.carried);
    step.stacked = collections_if(changed, [&](const auto& c) {
      return !options_.variable_broadcast.matches(c) && !options_.variable_carry.matches(c);
    });
    sort_results(out, step);
    return step;
  }

  void check_carry(const Arrays& out) const {
    if (out.size() < carry_.size()) {
      fail<TypeError>("scan: a step must return std::pair(carry, ys), got ", out.size(),
                      " arrays for a carry of ", carry_.size());
    }
  }

  static void check_carried(const Dict& before, const Dict& after) {
    const std::vector<std::string> had = tree_paths(before), has = tree_paths(after);
    if (had == has) return;
    for (const std::string& path : has) {
      if (std::find(had.begin(), had.end(), path) != had.end()) continue;
      fail_with_hint<TypeError>(
          "make it before the loop",
          "scan: a carried variable must exist before the loop, got a new one ", path);
    }
  }

  void sort_results(const Arrays& out, Step& step) {
    const std::size_t carried = carry_.size(), count = out.size() - carried;
    step.carry.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(carried));
    y_axes_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      y_axes_.push_back(axis_of_result("scan", options_.out_axes, i, count));
      (y_axes_.back() ? step.ys : step.constant_ys).push_back(out[carried + i]);
      if (y_axes_.back() || options_.check_constancy_invariants) continue;
      fail<TypeError>("scan: a broadcast result needs check_constancy_invariants");
    }
  }

  // Traces one step to find variables and results that are the same in all of them.
  void find_constants() {
    Step shape;
    const auto first_step = [&](Carry carry, Slice slice) {
      shape = run_step(carry, slice);
      Arrays found = tree_leaves(shape.constant);
      found.insert(found.end(), shape.constant_ys.begin(), shape.constant_ys.end());
      return found;
    };
    const Slice slice = reprise::detail::element_of(Slice{stacked_, {streams_.split, xs_.cut}});
    const Jaxpr jaxpr = make_jaxpr(first_step)(Carry{carried_, carry_}, slice);
    const std::vector<bool> all(jaxpr.out_types().size(), true);
    if (all.empty()) return;
    const LiveJaxpr live = dce_jaxpr(jaxpr, all);
    for (const bool is_used : live.used_args) {
      if (!is_used) continue;
      fail_with_hint<TypeError>(
          "list its collection in variable_axes or variable_carry",
          "scan: a broadcast variable or result must be the same in all steps, got one that "
          "depends on the carry or on a slice");
    }
    const Arrays found = live.jaxpr.eval({});
    const std::size_t variables = tree_leaves(shape.constant).size();
    const auto end_of_variables = found.begin() + static_cast<std::ptrdiff_t>(variables);
    merge_into(constant_, tree_unflatten(shape.constant, Arrays(found.begin(), end_of_variables)));
    constant_ys_.assign(end_of_variables, found.end());
  }

  const LiftScanOptions& options_;
  std::vector<VariableGroup> in_, out_;
  Boundary boundary_;
  const OnScopes& f_;
  Arrays carry_, constant_ys_;
  CutArgs xs_;
  std::int64_t length_ = 0;
  SplitStreams streams_;
  Dict constant_, carried_, stacked_;  // variables
  Axes y_axes_;
};

}  // namespace

Arrays lift_scan(const LiftScanOptions& options, const Scopes& scopes, const LiftedArgs& args,
                 const OnScopes& f) {
  if (args.count == 0) fail<TypeError>("scan: the first argument is the carry, got no arguments");
  return LiftedScan(options, scopes, args, f).run();
}

// -------------------------------------------------------------------------------------------- vmap
Arrays lift_vmap(const LiftVmapOptions& options, const Scopes& scopes, const LiftedArgs& args,
                 const OnScopes& f) {
  const std::vector<VariableGroup> in = groups_in(options.variable_axes),
                                   out = groups_out(options.variable_axes);
  const Boundary boundary(scopes, "vmap", all_of(out));
  const Dict variables = boundary.variables(all_of(in));
  const auto is_mapped = [&](const std::string& c) { return axis_for(in, c).axis.has_value(); };
  const Dict mapped = axes_to_front(collections_if(variables, is_mapped), in);
  const Dict shared =
      collections_if(variables, [&](const std::string& c) { return !is_mapped(c); });

  CutArgs xs;
  for (std::size_t i = 0; i < args.leaves.size(); ++i) {
    add_argument(xs, "vmap", args.leaves[i],
                 axis_of_argument("vmap", options.in_axes, args.argument[i], args.count));
  }
  for (const Array& leaf : tree_leaves(mapped)) xs.sizes.insert(leaf.shape(0));
  const std::int64_t size = common_size("vmap", "axis_size", xs.sizes, options.axis_size);
  const SplitStreams streams = split_streams(boundary, options.split_rngs, size);

  auto one = [&](Dict mapped_variables, Dict keys, Arrays cut) {
    return boundary.run(
        joined(shared, mapped_variables), joined(streams.shared, keys),
        [&](const Scopes& inside) { return f(inside, interleaved(xs.is_cut, cut, xs.whole)); });
  };
  // What comes out decides the axes, and is known only after the function ran once.
  const auto element = [](const auto& stacked) { return reprise::detail::element_of(stacked); };
  const auto [result, changed] =
      eval_shape(one, element(mapped), element(streams.split), element(xs.cut));
  std::vector<InAxes::Axis> out_axes;
  for (std::size_t i = 0; i < result.size(); ++i) {
    out_axes.push_back(axis_of_result("vmap", options.out_axes, i, result.size()));
  }
  for (const auto& [collection, node] : changed.items()) {
    const Axis axis = axis_for(out, collection).axis;
    out_axes.insert(out_axes.end(), tree_leaves(std::get<Dict>(node)).size(), axis);
  }
  if (out_axes.empty()) out_axes = {0};
  const VmapOptions axes{.in_axes = {0, 0, 0}, .out_axes = out_axes, .axis_size = size};
  const auto [y, stacked] = reprise::vmap(one, axes)(mapped, streams.split, xs.cut);
  boundary.write_back(stacked);
  return y;
}

}  // namespace reprise::nn::detail
