#include "transform/vmap.h"

#include "api/flat.h"
#include "control/body.h"
#include "ops/lax.h"
#include "reprise/autodiff.h"

namespace reprise::detail {
namespace {

using OptionalAxes = std::vector<std::optional<std::int64_t>>;

// The common size of the mapped axes.
std::int64_t mapped_size(const Callee& f, const Arrays& args, const OptionalAxes& axes,
                         std::optional<std::int64_t> given) {
  std::optional<std::int64_t> n = given;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!axes[i]) continue;
    const std::int64_t size = args[i].shape()[static_cast<std::size_t>(*axes[i])];
    if (n && *n != size) {
      fail<TypeError>("vmap: mapped axes must have one size, got ", *n, " and ", size, " (",
                      f.arg_names[i], " is ", args[i].type(), ")");
    }
    n = size;
  }
  if (!n) {
    fail_with_hint<TypeError>("map at least one argument, or give axis_size",
                              "vmap: nothing is mapped, got no axis");
  }
  return *n;
}

OptionalAxes expand_out_axes(const OptionalAxes& out_axes, std::size_t outputs) {
  if (out_axes.size() == outputs) return out_axes;
  if (out_axes.size() == 1) return OptionalAxes(outputs, out_axes[0]);
  fail<TypeError>("vmap: out_axes must have one entry, or one per result, got ", out_axes.size(),
                  " for ", outputs, " results");
}

}  // namespace

void check_axes_count(std::size_t axes, std::size_t args) {
  if (axes != args) {
    fail<TypeError>("vmap: in_axes must have one entry per argument, got ", axes, " for ", args);
  }
}

Arrays vmap(const Callee& f, const Arrays& args, const OptionalAxes& in_axes,
            const OptionalAxes& out_axes, std::optional<std::int64_t> axis_size) {
  const AtUser at(f.at);
  OptionalAxes axes = in_axes;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (axes[i]) axes[i] = canonical_axis("vmap", *axes[i], args[i].ndim());
  }
  const std::int64_t n = mapped_size(f, args, axes, axis_size);
  Types in = leaf_types(args);
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (axes[i]) in[i].shape.erase(in[i].shape.begin() + *axes[i]);
  }
  const Traced t = trace_callee(f, "vmap", in);
  Axes all_axes(t.consts.size());
  all_axes.insert(all_axes.end(), axes.begin(), axes.end());
  Batched b = reprise::vmap(*t.program, concat(t.consts, args), all_axes, n);
  const OptionalAxes wanted = expand_out_axes(out_axes, b.out.size());
  for (std::size_t k = 0; k < b.out.size(); ++k) {
    if (!wanted[k]) {
      if (b.axes[k]) {
        fail_with_hint<TypeError>("give an axis for this result",
                                  "vmap: a result with out_axes none must not be mapped, got ",
                                  b.out[k].type());
      }
      continue;
    }
    const std::int64_t rank = b.out[k].ndim() + (b.axes[k] ? 0 : 1);
    b.out[k] = axis_at(b.out[k], b.axes[k], canonical_axis("vmap", *wanted[k], rank), n);
  }
  return finished(std::move(b.out));
}

}  // namespace reprise::detail
