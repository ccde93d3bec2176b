// What users call inside of shard_map: names of axes are looked up, values that do not vary yet are
// made to.
#include "ops/collective.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "program/varying.h"
#include "reprise/ops.h"
#include "reprise/shard_map.h"

#include <algorithm>

namespace reprise::lax {
namespace {

AxisList axes_named(const char* op, const AxisName& name) {
  const MeshPtr mesh = current_mesh();
  if (mesh == nullptr) {
    fail_with_hint<TypeError>("call it in a function that shard_map maps", op,
                              ": axes of a mesh have names inside of shard_map only, got ",
                              join(name.names(), ", "));
  }
  AxisList list{mesh, {}};
  for (const std::string& n : name.names()) {
    const int axis = mesh->find(n);
    if (axis < 0) fail<TypeError>(op, ": no axis has this name, got ", n, " in ", mesh->text());
    if (std::find(list.axes.begin(), list.axes.end(), axis) != list.axes.end())
      fail<TypeError>(op, ": an axis must be named once, got ", join(name.names(), ", "));
    list.axes.push_back(axis);
  }
  if (list.axes.empty()) fail<TypeError>(op, ": an axis must be named, got none");
  return list;
}
OpaquePtr param(const AxisList& axes, bool bare = false) {
  return std::make_shared<const AxesParam>(axes, bare);
}
Array varying_over(const Array& x, const AxisList& axes) {
  return with_varying(x, axes_of(axes.mesh, axes.bits()));
}
// A C++ number is the same everywhere: nothing is sent.
bool is_number(const Array& x) { return content(x).number() != nullptr; }

}  // namespace

Array psum(Operand x, const AxisName& axis_name) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("psum", axis_name);
  if (is_number(x.array))
    return mul(x.array, const_like(x.array, static_cast<double>(axes.size())));
  return psum_invariant_p.bind1({varying_over(x.array, axes)}, {{"axes", param(axes)}});
}
Array pmean(Operand x, const AxisName& axis_name) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("pmean", axis_name);
  if (!is_floating(x.array.dtype()))
    fail<TypeError>("pmean: a floating dtype is needed, got ", x.array.type());
  const Array sum = psum(x, axis_name);
  return sum / static_cast<double>(axes.size());
}
Array pmax(Operand x, const AxisName& axis_name) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("pmax", axis_name);
  if (is_number(x.array)) return x.array;
  return pmax_p.bind1({varying_over(x.array, axes)},
                      {{"axes", param(axes)}, {"axis_index_groups", None{}}});
}
Array pmin(Operand x, const AxisName& axis_name) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("pmin", axis_name);
  if (is_number(x.array)) return x.array;
  return pmin_p.bind1({varying_over(x.array, axes)},
                      {{"axes", param(axes)}, {"axis_index_groups", None{}}});
}
Array all_gather(Operand x, const AxisName& axis_name, const AllGatherOptions& options) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("all_gather", axis_name);
  const std::int64_t rank = x.array.ndim() + (options.tiled ? 0 : 1);
  const std::int64_t d = canonical_axis("all_gather", options.axis, rank);
  return all_gather_p.bind1({varying_over(x.array, axes)}, {{"all_gather_dimension", d},
                                                            {"axis_index_groups", None{}},
                                                            {"axis_name", param(axes)},
                                                            {"axis_size", axes.size()},
                                                            {"tiled", options.tiled}});
}
Array psum_scatter(Operand x, const AxisName& axis_name, const PsumScatterOptions& options) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("psum_scatter", axis_name);
  const std::int64_t d = canonical_axis("psum_scatter", options.scatter_dimension, x.array.ndim());
  return reduce_scatter_p.bind1({varying_over(x.array, axes)}, {{"axis_index_groups", None{}},
                                                                {"axis_name", param(axes)},
                                                                {"axis_size", axes.size()},
                                                                {"scatter_dimension", d},
                                                                {"tiled", options.tiled}});
}
Array ppermute(Operand x, const AxisName& axis_name,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& perm) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("ppermute", axis_name);
  std::vector<reprise::Ints> pairs;
  for (const auto& [source, destination] : perm) pairs.push_back({source, destination});
  return ppermute_p.bind1({varying_over(x.array, axes)},
                          {{"axis_name", param(axes)}, {"perm", pairs}});
}
Array all_to_all(Operand x, const AxisName& axis_name, std::int64_t split_axis,
                 std::int64_t concat_axis, const AllToAllOptions& options) {
  const AtUser at(x.at);
  const AxisList axes = axes_named("all_to_all", axis_name);
  const std::int64_t rank = x.array.ndim();
  const std::int64_t split = canonical_axis("all_to_all", split_axis, rank),
                     concat = canonical_axis("all_to_all", concat_axis, rank);
  return all_to_all_p.bind1({varying_over(x.array, axes)}, {{"axis_index_groups", None{}},
                                                            {"axis_name", param(axes, true)},
                                                            {"concat_axis", concat},
                                                            {"split_axis", split},
                                                            {"tiled", options.tiled}});
}
Array axis_index(const AxisName& axis_name, Location at) {
  const AtUser scope(at);
  return axis_index_p.bind1({}, {{"axis_name", param(axes_named("axis_index", axis_name), true)}});
}
std::int64_t axis_size(const AxisName& axis_name, Location at) {
  const AtUser scope(at);
  return axes_named("axis_size", axis_name).size();
}
Array pvary(Operand x, const AxisName& axis_name) {
  const AtUser at(x.at);
  return varying_over(x.array, axes_named("pvary", axis_name));
}

}  // namespace reprise::lax
