#include "ops/collective.h"

#include "array/access.h"
#include "ops/collective_data.h"
#include "ops/communicator.h"
#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "program/varying.h"

#include <algorithm>

namespace reprise {
namespace {

thread_local MeshPtr mesh_now = nullptr;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Attr axes_attr(const AxisList& axes, bool bare = false) {
  return OpaquePtr(std::make_shared<const AxesParam>(axes, bare));
}

const MeshAxes* without(const MeshAxes* varying, const AxisList& axes) {
  return axes_of(axes.mesh, bits_of(varying) & ~axes.bits());
}
// Operands vary over the axes: who binds a collective sees to it. Compiled programs have lost the
// pvary equations, so the rules do not ask.
std::int64_t checked_dimension(const char* op, const Params& params, const char* key,
                               std::int64_t rank) {
  const auto d = params.get<std::int64_t>(key);
  if (d < 0 || d >= rank) {
    fail<TypeError>(op, ": the dimension must be from 0 to ", rank - 1, ", got ", d);
  }
  return d;
}
void check_divides(const char* op, const Type& t, std::int64_t dimension, const AxisList& axes,
                   bool tiled) {
  const std::int64_t size = t.shape[at(dimension)], n = axes.size();
  if (tiled ? size % n == 0 : size == n) return;
  fail<TypeError>(op,
                  tiled ? ": the size of the dimension must be a multiple of the axis size "
                        : ": the size of the dimension must be the axis size ",
                  n, " of ", axes.text(), ", got ", t, " along dimension ", dimension);
}

// ------------------------------------------------------------------------------------------ types
Types pvary_type(const Types& in, const Params& params) {
  const AxisList& axes = axes_of(params);
  if ((bits_of(in[0].varying) & axes.bits()) != 0) {
    fail<TypeError>("pvary: the operand must not vary yet over ", axes.text(), ", got ", in[0]);
  }
  Type out = in[0];
  out.varying = united(out.varying, axes_of(axes.mesh, axes.bits()));
  return {out};
}
template <const char* op>
Types reduce_type(const Types& in, const Params& params) {
  if (!is_floating(in[0].dtype) && !is_integer(in[0].dtype)) {
    fail<TypeError>(op, ": numbers are needed, got ", in[0]);
  }
  Type out = in[0];
  out.varying = without(in[0].varying, axes_of(params));
  return {out};
}
Types gather_type(const Types& in, const Params& params) {
  const AxisList& axes = axes_of(params);
  const bool tiled = params.get<bool>("tiled");
  Type out = in[0];
  const std::int64_t d =
      checked_dimension("all_gather", params, "all_gather_dimension", out.ndim() + (tiled ? 0 : 1));
  if (tiled)
    out.shape[at(d)] *= axes.size();
  else
    out.shape.insert(out.shape.begin() + d, axes.size());
  return {out};
}
Types gather_invariant_type(const Types& in, const Params& params) {
  Type out = gather_type(in, params)[0];
  out.varying = without(out.varying, axes_of(params));
  return {out};
}
Types scatter_type(const Types& in, const Params& params) {
  const AxisList& axes = axes_of(params);
  const bool tiled = params.get<bool>("tiled");
  Type out = in[0];
  const std::int64_t d = checked_dimension("psum_scatter", params, "scatter_dimension", out.ndim());
  check_divides("psum_scatter", in[0], d, axes, tiled);
  if (tiled)
    out.shape[at(d)] /= axes.size();
  else
    out.shape.erase(out.shape.begin() + d);
  return {out};
}
Types ppermute_type(const Types& in, const Params& params) {
  const AxisList& axes = axes_of(params);
  std::vector<bool> sends(at(axes.size())), gets(at(axes.size()));
  for (const Ints& pair : params.get<std::vector<Ints>>("perm")) {
    const bool fits = pair.size() == 2 && std::min(pair[0], pair[1]) >= 0 &&
                      std::max(pair[0], pair[1]) < axes.size();
    if (!fits || sends[at(pair[0])] || gets[at(pair[1])]) {
      fail<TypeError>("ppermute: sources and destinations must be ranks from 0 to ",
                      axes.size() - 1, ", each at most once, got ",
                      python_text(*params.find("perm")));
    }
    sends[at(pair[0])] = gets[at(pair[1])] = true;
  }
  return {in[0]};
}
Types all_to_all_type(const Types& in, const Params& params) {
  const AxisList& axes = axes_of(params);
  const bool tiled = params.get<bool>("tiled");
  Type out = in[0];
  const std::int64_t split = checked_dimension("all_to_all", params, "split_axis", out.ndim()),
                     concat = checked_dimension("all_to_all", params, "concat_axis", out.ndim());
  check_divides("all_to_all", in[0], split, axes, tiled);
  if (tiled) {
    out.shape[at(split)] /= axes.size();
    out.shape[at(concat)] *= axes.size();
  } else {
    out.shape.erase(out.shape.begin() + split);
    out.shape.insert(out.shape.begin() + concat, axes.size());
  }
  return {out};
}
Types axis_index_type(const Types&, const Params& params) {
  const AxisList& axes = axes_of(params);
  Type out{Dtype::i32, {}};
  out.varying = axes_of(axes.mesh, axes.bits());
  return {out};
}

// ------------------------------------------------------------------------------------- evaluation
Arrays pvary_eval(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}
template <const Primitive& prim>
Arrays collective_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Type& in = x[0].type();
  std::vector<std::byte> scratch(scratch_bytes(prim, params, in, out[0]));
  run_collective(prim, params, in, out[0],
                 {elements<std::byte>(x[0]), result.bytes(), scratch.data()});
  return {std::move(result).finish()};
}
Arrays axis_index_eval(const Arrays&, const Params& params, const Types& out) {
  const AxisList& axes = axes_of(params);
  check_mesh("axis_index", axes.mesh);
  NewArray result(out[0]);
  result.data<std::int32_t>()[0] =
      static_cast<std::int32_t>(axes.position_of(communicator().rank()));
  return {std::move(result).finish()};
}

// ------------------------------------------------------------------------------------ derivatives
template <const Primitive& prim>
Tangents linear(const Arrays&, const Tangents& dx, const Arrays&, const Params& params) {
  return {prim.bind1({*dx[0]}, params)};
}
// The transpose with the operand's own axes: a cotangent that lacks some varies over none of them.
Array as_varying(const Tangent& ct, const AxisList& axes) {
  return with_varying(*ct, axes_of(axes.mesh, axes.bits()));
}
Tangents pvary_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {psum_invariant_p.bind1({as_varying(ct[0], axes_of(params))},
                                 {{"axes", *params.find("axes")}})};
}
Tangents psum_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {pvary_p.bind1({*ct[0]}, {{"axes", *params.find("axes")}})};
}
Tangents gather_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {reduce_scatter_p.bind1({as_varying(ct[0], axes_of(params))},
                                 {{"axis_index_groups", None{}},
                                  {"axis_name", *params.find("axis_name")},
                                  {"axis_size", *params.find("axis_size")},
                                  {"scatter_dimension", *params.find("all_gather_dimension")},
                                  {"tiled", *params.find("tiled")}})};
}
// The cotangent is the same on all ranks: each takes its own part.
Tangents gather_invariant_transpose(const Tangents& ct, const Primals&, const Types& in,
                                    const Params& params) {
  const Array part =
      own_part(*ct[0], axes_of(params), params.get<std::int64_t>("all_gather_dimension"));
  return {params.get<bool>("tiled") ? part : lax::reshape(part, in[0].shape)};
}
Tangents scatter_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {all_gather_p.bind1({as_varying(ct[0], axes_of(params))},
                             {{"all_gather_dimension", *params.find("scatter_dimension")},
                              {"axis_index_groups", None{}},
                              {"axis_name", *params.find("axis_name")},
                              {"axis_size", *params.find("axis_size")},
                              {"tiled", *params.find("tiled")}})};
}
Tangents ppermute_transpose(const Tangents& ct, const Primals&, const Types&,
                            const Params& params) {
  std::vector<Ints> back;
  for (const Ints& pair : params.get<std::vector<Ints>>("perm")) back.push_back({pair[1], pair[0]});
  return {ppermute_p.bind1({as_varying(ct[0], axes_of(params))}, params.with("perm", back))};
}
Tangents all_to_all_transpose(const Tangents& ct, const Primals&, const Types&,
                              const Params& params) {
  const Attr split = *params.find("split_axis"), concat = *params.find("concat_axis");
  return {all_to_all_p.bind1({as_varying(ct[0], axes_of(params))},
                             params.with("split_axis", concat).with("concat_axis", split))};
}

// --------------------------------------------------------------------------------------- batching
// The mapped axis in front: dimensions count one more.
template <const char*... keys>
Batched batch_behind(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                     const Params& params) {
  Params moved = params;
  ((moved = moved.with(keys, params.get<std::int64_t>(keys) + 1)), ...);
  return {self.bind({lax::moveaxis(x[0], *axes[0], 0)}, moved), {0}};
}
Params not_from_text(const Params&, const Types&, const Types&) {
  fail<TypeError>("parse: collectives belong to the mesh of a running program, got one in a text");
}

constexpr ParamRule axes_rules[] = {{"axes", form::object}};
constexpr ParamRule extremum_rules[] = {{"axes", form::object}, {"axis_index_groups", form::none}};
constexpr ParamRule gather_rules[] = {{"all_gather_dimension", form::integer},
                                      {"axis_index_groups", form::none},
                                      {"axis_name", form::object},
                                      {"axis_size", form::integer},
                                      {"tiled", form::flag}};
constexpr ParamRule scatter_rules[] = {{"axis_index_groups", form::none},
                                       {"axis_name", form::object},
                                       {"axis_size", form::integer},
                                       {"scatter_dimension", form::integer},
                                       {"tiled", form::flag}};
constexpr ParamRule ppermute_rules[] = {{"axis_name", form::object}, {"perm", form::rows}};
constexpr ParamRule all_to_all_rules[] = {{"axis_index_groups", form::none},
                                          {"axis_name", form::object},
                                          {"concat_axis", form::integer},
                                          {"split_axis", form::integer},
                                          {"tiled", form::flag}};
constexpr ParamRule axis_index_rules[] = {{"axis_name", form::object}};

constexpr char psum_name[] = "psum", pmax_name[] = "pmax", pmin_name[] = "pmin";
constexpr char gather_key[] = "all_gather_dimension", scatter_key[] = "scatter_dimension",
               split_key[] = "split_axis", concat_key[] = "concat_axis";
constexpr Effect together{.is_ordered = true, .is_shared = true};

}  // namespace

constinit const Primitive pvary_p{.name = "pvary",
                                  .kind = Kind::shape,
                                  .type = pvary_type,
                                  .eval = pvary_eval,
                                  .tangent = linear<pvary_p>,
                                  .transpose = pvary_transpose,
                                  .batch = elementwise::batch,
                                  .param_rules = axes_rules,
                                  .parsed_params = not_from_text,
                                  .arity = 1,
                                  .types_varying = true};
constinit const Primitive psum_invariant_p{.name = "psum_invariant",
                                           .kind = Kind::effect,
                                           .type = reduce_type<psum_name>,
                                           .eval = collective_eval<psum_invariant_p>,
                                           .tangent = linear<psum_invariant_p>,
                                           .transpose = psum_transpose,
                                           .batch = elementwise::batch,
                                           .param_rules = axes_rules,
                                           .parsed_params = not_from_text,
                                           .arity = 1,
                                           .effect = together,
                                           .types_varying = true};
constinit const Primitive pmax_p{.name = "pmax",
                                 .kind = Kind::effect,
                                 .type = reduce_type<pmax_name>,
                                 .eval = collective_eval<pmax_p>,
                                 .batch = elementwise::batch,
                                 .param_rules = extremum_rules,
                                 .parsed_params = not_from_text,
                                 .arity = 1,
                                 .effect = together,
                                 .types_varying = true};
constinit const Primitive pmin_p{.name = "pmin",
                                 .kind = Kind::effect,
                                 .type = reduce_type<pmin_name>,
                                 .eval = collective_eval<pmin_p>,
                                 .batch = elementwise::batch,
                                 .param_rules = extremum_rules,
                                 .parsed_params = not_from_text,
                                 .arity = 1,
                                 .effect = together,
                                 .types_varying = true};
constinit const Primitive all_gather_p{.name = "all_gather",
                                       .kind = Kind::effect,
                                       .type = gather_type,
                                       .eval = collective_eval<all_gather_p>,
                                       .tangent = linear<all_gather_p>,
                                       .transpose = gather_transpose,
                                       .batch = batch_behind<gather_key>,
                                       .param_rules = gather_rules,
                                       .parsed_params = not_from_text,
                                       .arity = 1,
                                       .effect = together,
                                       .types_varying = true};
constinit const Primitive all_gather_invariant_p{.name = "all_gather_invariant",
                                                 .kind = Kind::effect,
                                                 .type = gather_invariant_type,
                                                 .eval = collective_eval<all_gather_invariant_p>,
                                                 .tangent = linear<all_gather_invariant_p>,
                                                 .transpose = gather_invariant_transpose,
                                                 .batch = batch_behind<gather_key>,
                                                 .param_rules = gather_rules,
                                                 .parsed_params = not_from_text,
                                                 .arity = 1,
                                                 .effect = together,
                                                 .types_varying = true};
constinit const Primitive reduce_scatter_p{.name = "reduce_scatter",
                                           .kind = Kind::effect,
                                           .type = scatter_type,
                                           .eval = collective_eval<reduce_scatter_p>,
                                           .tangent = linear<reduce_scatter_p>,
                                           .transpose = scatter_transpose,
                                           .batch = batch_behind<scatter_key>,
                                           .param_rules = scatter_rules,
                                           .parsed_params = not_from_text,
                                           .arity = 1,
                                           .effect = together,
                                           .types_varying = true};
constinit const Primitive ppermute_p{.name = "ppermute",
                                     .kind = Kind::effect,
                                     .type = ppermute_type,
                                     .eval = collective_eval<ppermute_p>,
                                     .tangent = linear<ppermute_p>,
                                     .transpose = ppermute_transpose,
                                     .batch = elementwise::batch,
                                     .param_rules = ppermute_rules,
                                     .parsed_params = not_from_text,
                                     .arity = 1,
                                     .effect = together,
                                     .types_varying = true};
constinit const Primitive all_to_all_p{.name = "all_to_all",
                                       .kind = Kind::effect,
                                       .type = all_to_all_type,
                                       .eval = collective_eval<all_to_all_p>,
                                       .tangent = linear<all_to_all_p>,
                                       .transpose = all_to_all_transpose,
                                       .batch = batch_behind<split_key, concat_key>,
                                       .param_rules = all_to_all_rules,
                                       .parsed_params = not_from_text,
                                       .arity = 1,
                                       .effect = together,
                                       .types_varying = true};
constinit const Primitive axis_index_p{.name = "axis_index",
                                       .kind = Kind::index,
                                       .type = axis_index_type,
                                       .eval = axis_index_eval,
                                       .param_rules = axis_index_rules,
                                       .parsed_params = not_from_text,
                                       .arity = 0,
                                       .types_varying = true};

// ------------------------------------------------------------------------------------------ helpers
std::string AxesParam::text() const {
  if (!is_bare || list.axes.size() != 1) return list.text();
  return list.mesh->axes[at(list.axes[0])].name;
}
bool AxesParam::equal(const OpaqueParam& other) const {
  return static_cast<const AxesParam&>(other).list == list;
}
const AxisList& axes_of(const Params& params) {
  const char* key = params.find("axes") == nullptr ? "axis_name" : "axes";
  return params.get_opaque<AxesParam>(key)->list;
}

MeshPtr current_mesh() { return mesh_now; }
InMesh::InMesh(MeshPtr mesh) : outer_(mesh_now) { mesh_now = mesh; }
InMesh::~InMesh() { mesh_now = outer_; }

Array with_varying(const Array& x, const MeshAxes* axes) {
  const std::uint64_t missing = bits_of(axes) & ~bits_of(x.type().varying);
  if (missing == 0) return x;
  united(axes, x.type().varying);  // of one mesh
  AxisList list{axes->mesh, {}};
  for (std::size_t i = 0; i < axes->mesh->axes.size(); ++i) {
    if ((missing >> i & 1u) != 0) list.axes.push_back(static_cast<int>(i));
  }
  return pvary_p.bind1({x}, {{"axes", axes_attr(list)}});
}
Arrays with_varying(const Arrays& x, const MeshAxes* axes) {
  Arrays out;
  for (const Array& a : x) out.push_back(with_varying(a, axes));
  return out;
}

Arrays with_common_varying(const Arrays& x) {
  const MeshAxes* all = nullptr;
  for (const Array& a : x) all = united(all, a.type().varying);
  return all == nullptr ? x : with_varying(x, all);
}

Array gathered(const Array& x, const AxisList& axes, std::int64_t dimension) {
  const Array varying = with_varying(x, axes_of(axes.mesh, axes.bits()));
  return all_gather_invariant_p.bind1({varying}, {{"all_gather_dimension", dimension},
                                                  {"axis_index_groups", None{}},
                                                  {"axis_name", axes_attr(axes)},
                                                  {"axis_size", axes.size()},
                                                  {"tiled", true}});
}
Array own_part(const Array& x, const AxisList& axes, std::int64_t dimension) {
  const Array index = axis_index_p.bind1({}, {{"axis_name", axes_attr(axes, true)}});
  Shape sizes = x.shape();
  sizes[at(dimension)] /= axes.size();
  const Array start = lax::mul(index, static_cast<std::int32_t>(sizes[at(dimension)]));
  Arrays starts(sizes.size(), lax::const_like(index, 0));
  starts[at(dimension)] = start;
  return lax::dynamic_slice(x, starts, sizes);
}

std::size_t communicated_bytes(const Equation& e, const Type& in, const Type& out) {
  if (!e.prim->effect.is_shared) return 0;
  const AxisList& axes = axes_of(e.params);
  const auto n = static_cast<std::size_t>(axes.size());
  const std::size_t larger = std::max(in.nbytes(), out.nbytes());
  if (n == 1) return 0;
  if (e.prim == &ppermute_p) return larger;
  const std::size_t share = larger / n * (n - 1);  // what a rank gets of the others
  const bool is_reduced_everywhere =
      e.prim == &psum_invariant_p || e.prim == &pmax_p || e.prim == &pmin_p;
  return is_reduced_everywhere ? 2 * share : share;  // scattered sums, then gathered
}

}  // namespace reprise
