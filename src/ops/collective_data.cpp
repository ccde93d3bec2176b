#include "ops/collective_data.h"

#include "base/dtype.h"
#include "ops/collective.h"
#include "ops/communicator.h"
#include "ops/records.h"

#include <cstring>

namespace reprise {
namespace {

// How a collective moves data: the operand in parts, the result in parts.
struct Layout {
  Around in, out;
};
std::int64_t dimension(const Params& params, const char* key) {
  return params.get<std::int64_t>(key);
}

Layout layout_of(const Primitive& prim, const Params& params, const Type& in, const Type& out) {
  const std::int64_t n = axes_of(params).size();
  if (&prim == &all_gather_p || &prim == &all_gather_invariant_p)
    return {{1, 1, in.nbytes()}, around(out, dimension(params, "all_gather_dimension"), n)};
  if (&prim == &reduce_scatter_p)
    return {around(in, dimension(params, "scatter_dimension"), n), {1, 1, out.nbytes()}};
  if (&prim == &all_to_all_p)
    return {around(in, dimension(params, "split_axis"), n),
            around(out, dimension(params, "concat_axis"), n)};
  return {{1, 1, in.nbytes()}, {1, 1, out.nbytes()}};
}

RankGroup group_of(const AxisList& axes) {
  const std::int64_t rank = communicator().rank();
  return {axes.group_of(rank), axes.position_of(rank)};
}

void permute(const Params& params, const Type& in, const CollectiveData& data) {
  const AxisList& axes = axes_of(params);
  const std::int64_t here = axes.position_of(communicator().rank());
  std::int64_t target = -1, source = -1;
  for (const Ints& pair : params.get<std::vector<Ints>>("perm")) {
    if (pair[0] == here) target = pair[1];
    if (pair[1] == here) source = pair[0];
  }
  communicator().permute(group_of(axes), data.from, data.to, in.nbytes(), target, source);
  if (source < 0 && in.nbytes() > 0) std::memset(data.to, 0, in.nbytes());
}

}  // namespace

Around around(const Type& t, std::int64_t dimension, std::int64_t parts) {
  Around a;
  a.parts = parts;
  const auto d = static_cast<std::size_t>(dimension);
  for (std::size_t i = 0; i < d; ++i) a.outer *= t.shape[i];
  a.inner = itemsize(t.dtype);
  for (std::size_t i = d; i < t.shape.size(); ++i) a.inner *= static_cast<std::size_t>(t.shape[i]);
  a.inner /= static_cast<std::size_t>(parts);
  return a;
}
void parts_first(const Around& a, const std::byte* from, std::byte* to) {
  if (a.inner == 0) return;
  const auto parts = static_cast<std::size_t>(a.parts), outer = static_cast<std::size_t>(a.outer);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t p = 0; p < parts; ++p)
      std::memcpy(to + (p * outer + o) * a.inner, from + (o * parts + p) * a.inner, a.inner);
  }
}
void parts_inside(const Around& a, const std::byte* from, std::byte* to) {
  if (a.inner == 0) return;
  const auto parts = static_cast<std::size_t>(a.parts), outer = static_cast<std::size_t>(a.outer);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t p = 0; p < parts; ++p)
      std::memcpy(to + (o * parts + p) * a.inner, from + (p * outer + o) * a.inner, a.inner);
  }
}

std::size_t scratch_bytes(const Primitive& prim, const Params& params, const Type& in,
                          const Type& out) {
  const Layout l = layout_of(prim, params, in, out);
  return (l.in.outer > 1 ? in.nbytes() : 0) + (l.out.outer > 1 ? out.nbytes() : 0);
}

void run_collective(const Primitive& prim, const Params& params, const Type& in, const Type& out,
                    const CollectiveData& data) {
  const AxisList& axes = axes_of(params);
  check_mesh(prim.name, axes.mesh);
  Communicator& ranks = communicator();
  const RankGroup group = group_of(axes);
  if (&prim == &ppermute_p) return permute(params, in, data);
  const Layout l = layout_of(prim, params, in, out);
  const std::byte* from = data.from;
  std::byte *to = data.to, *scratch = data.scratch;
  if (l.in.outer > 1) {
    parts_first(l.in, from, scratch);
    from = scratch;
    scratch += in.nbytes();
  }
  if (l.out.outer > 1) to = scratch;
  if (&prim == &psum_invariant_p)
    ranks.all_reduce(group, Reduction::sum, in.dtype, from, to, in.size());
  else if (&prim == &pmax_p || &prim == &pmin_p)
    ranks.all_reduce(group, &prim == &pmax_p ? Reduction::max : Reduction::min, in.dtype, from, to,
                     in.size());
  else if (&prim == &reduce_scatter_p)
    ranks.reduce_scatter(group, in.dtype, from, to, out.size());
  else if (&prim == &all_to_all_p)
    ranks.all_to_all(group, from, to, in.nbytes() / static_cast<std::size_t>(axes.size()));
  else
    ranks.all_gather(group, from, to, in.nbytes());
  if (l.out.outer > 1) parts_inside(l.out, to, data.to);
}

}  // namespace reprise
