// The shard_map primitive: a call whose body works on parts.
//
//   linearize:  shard_map[f]: a -> b  =>  shard_map: a -> (b, res)  and  shard_map: (res, ȧ) -> ḃ
//               residuals that vary over the mesh stay on their ranks
//   transpose:  the specs of operands and results change places
#include "control/shard_map.h"

#include "control/agree.h"
#include "control/body.h"
#include "control/records.h"
#include "ops/collective.h"
#include "ops/lax.h"
#include "program/varying.h"
#include "transform/dce.h"
#include "transform/jvp.h"
#include "transform/rewrite.h"
#include "transform/split_call.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {

// ------------------------------------------------------------------------------------------- specs
std::uint64_t ShardSpec::bits() const {
  std::uint64_t all = 0;
  for (const std::vector<int>& axes : dims) {
    for (int a : axes) all |= std::uint64_t{1} << a;
  }
  return all;
}
std::string to_text(const ShardSpec& spec, const MeshGrid& mesh) {
  std::vector<std::string> entries;
  for (const std::vector<int>& axes : spec.dims) {
    std::vector<std::string> names;
    for (int a : axes) names.push_back("'" + mesh.axes[static_cast<std::size_t>(a)].name + "'");
    const std::string list = join(names, ", ");
    entries.push_back(names.empty() ? "None" : names.size() == 1 ? list : "(" + list + ")");
  }
  return "P(" + join(entries, ", ") + (entries.size() == 1 ? ",)" : ")");
}
std::string SpecsParam::text() const {
  std::vector<std::string> all;
  for (const ShardSpec& s : specs) all.push_back(to_text(s, *mesh));
  return "(" + join(all, ", ") + (all.size() == 1 ? ",)" : ")");
}
bool SpecsParam::equal(const OpaqueParam& other) const {
  const auto& o = static_cast<const SpecsParam&>(other);
  return o.mesh == mesh && o.specs == specs;
}

Type part_of(const Type& whole, const ShardSpec& spec, MeshPtr mesh, const std::string& what) {
  if (spec.is_local) return whole;
  if (spec.dims.size() > whole.shape.size()) {
    fail<TypeError>("shard_map: a spec must have at most one entry per dimension, got ",
                    to_text(spec, *mesh), " for ", what, " of type ", whole);
  }
  Type part = whole;
  part.weak_type = false;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    const std::int64_t n = AxisList{mesh, spec.dims[d]}.size();
    if (whole.shape[d] % n != 0) {
      fail<TypeError>("shard_map: the axes of a spec must divide the dimension, got ",
                      to_text(spec, *mesh), " for ", what, " of type ", whole, ": dimension ", d,
                      " of size ", whole.shape[d], " in ", n, " parts");
    }
    part.shape[d] /= n;
  }
  part.varying = axes_of(mesh, spec.bits());
  return part;
}
Type whole_of(const Type& part, const ShardSpec& spec, MeshPtr mesh) {
  if (spec.is_local) return part;
  Type whole = part;
  for (std::size_t d = 0; d < spec.dims.size(); ++d)
    whole.shape[d] *= AxisList{mesh, spec.dims[d]}.size();
  whole.varying = nullptr;
  return whole;
}
Array cut(const Array& whole, const ShardSpec& spec, MeshPtr mesh) {
  Array part = whole;
  for (std::size_t d = 0; d < spec.dims.size() && !spec.is_local; ++d) {
    if (spec.dims[d].empty()) continue;
    part = own_part(part, {mesh, spec.dims[d]}, static_cast<std::int64_t>(d));
  }
  return part;
}
Array put_together(const Array& part, const ShardSpec& spec, MeshPtr mesh) {
  Array whole = part;
  for (std::size_t d = 0; d < spec.dims.size() && !spec.is_local; ++d) {
    if (spec.dims[d].empty()) continue;
    whole = gathered(whole, {mesh, spec.dims[d]}, static_cast<std::int64_t>(d));
  }
  return whole;
}
ShardSpec spec_of_constant(const Type& t) {
  if (t.varying == nullptr) return {};
  std::vector<int> axes;
  for (std::size_t i = 0; i < t.varying->mesh->axes.size(); ++i) {
    if ((t.varying->bits >> i & 1u) != 0) axes.push_back(static_cast<int>(i));
  }
  return {{axes}, true};
}

namespace {

// ------------------------------------------------------------------------------------------ params
const ProgramPtr& body_of(const Params& p) { return p.get<ProgramPtr>("jaxpr"); }
MeshPtr mesh_of(const Params& p) { return p.get_opaque<MeshParam>("mesh")->mesh; }
const ShardSpecs& in_specs_of(const Params& p) {
  return p.get_opaque<SpecsParam>("in_specs")->specs;
}
const ShardSpecs& out_specs_of(const Params& p) {
  return p.get_opaque<SpecsParam>("out_specs")->specs;
}
Params with_specs(const Params& p, ShardSpecs in, ShardSpecs out) {
  const MeshPtr mesh = mesh_of(p);
  return p.with("in_specs", OpaquePtr(std::make_shared<const SpecsParam>(std::move(in), mesh)))
      .with("out_specs", OpaquePtr(std::make_shared<const SpecsParam>(std::move(out), mesh)));
}
Arrays bind_with(const Params& p, const ProgramPtr& body, ShardSpecs in, ShardSpecs out,
                 const Arrays& args) {
  return shard_map_p.bind(args, with_specs(p, std::move(in), std::move(out)).with("jaxpr", body));
}
ShardSpecs constant_specs(const Arrays& consts) {
  ShardSpecs specs;
  for (const Array& c : consts) specs.push_back(spec_of_constant(c.type()));
  return specs;
}
template <class T>
std::vector<T> only(const std::vector<T>& all, const std::vector<bool>& mask) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (mask[i]) some.push_back(all[i]);
  }
  return some;
}
template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// ------------------------------------------------------------------------------------------- rules
Types shard_map_type(const Types& in, const Params& params) {
  const Program& body = *body_of(params);
  const MeshPtr mesh = mesh_of(params);
  const ShardSpecs &ins = in_specs_of(params), &outs = out_specs_of(params);
  if (ins.size() != in.size() || outs.size() != body.out.size()) {
    fail<TypeError>("shard_map: a spec for each operand and result is needed, got ", ins.size(),
                    " for ", in.size(), " and ", outs.size(), " for ", body.out.size());
  }
  Types parts;
  for (std::size_t i = 0; i < in.size(); ++i)
    parts.push_back(part_of(in[i], ins[i], mesh, str("operand ", i)));
  check_operands("shard_map", body, parts);
  Types out;
  const Types made = body.out_types();
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (!outs[k].is_local && (bits_of(made[k].varying) & ~outs[k].bits()) != 0) {
      fail_with_hint<TypeError>(
          "name the axis in the spec, or make the value equal on all ranks with psum, pmax or "
          "all_gather",
          "shard_map: a result that varies over an axis must name it in its spec, got ",
          to_text(outs[k], *mesh), " for ", made[k]);
    }
    if (outs[k].dims.size() > made[k].shape.size() && !outs[k].is_local) {
      fail<TypeError>("shard_map: a spec must have at most one entry per dimension, got ",
                      to_text(outs[k], *mesh), " for a result of type ", made[k]);
    }
    out.push_back(whole_of(made[k], outs[k], mesh));
  }
  return out;
}

// Cuts operands, computes, puts results together: a program on whole values.
struct Opened {
  ProgramPtr program;
};
ProgramPtr opened(const Params& params, const Types& in) {
  const Program& body = *body_of(params);
  const MeshPtr mesh = mesh_of(params);
  std::string key = str("opened:", mesh->text(), python_text(*params.find("in_specs")),
                        python_text(*params.find("out_specs")), "/", join(in, ","));
  for (const ShardSpecs* specs : {&in_specs_of(params), &out_specs_of(params)}) {
    for (const ShardSpec& s : *specs) key += s.is_local ? 'l' : 'w';
  }
  return derive<Opened>(
             body, key,
             [&] {
               const ShardSpecs &ins = in_specs_of(params), &outs = out_specs_of(params);
               auto whole = [&](const Arrays& args) {
                 Arrays parts, result;
                 for (std::size_t i = 0; i < args.size(); ++i)
                   parts.push_back(cut(args[i], ins[i], mesh));
                 const Arrays made = eval(body, parts);
                 for (std::size_t k = 0; k < made.size(); ++k)
                   result.push_back(put_together(made[k], outs[k], mesh));
                 return result;
               };
               return Opened{
                   trace(whole, in, {.transform = "shard_map", .name = body.name, .body = true})
                       .program};
             })
      ->program;
}
Types types_of(const Arrays& x) {
  Types types;
  for (const Array& a : x) types.push_back(a.type());
  return types;
}
Arrays shard_map_eval(const Arrays& x, const Params& params, const Types&) {
  const ProgramPtr whole = opened(params, types_of(x));
  agree_about(*whole);
  return eval(*whole, x);
}

Duals shard_map_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto j = jvp_program(*body_of(params), nonzero_mask(dx));
  const ShardSpecs &ins = in_specs_of(params), &outs = out_specs_of(params);
  const Arrays out = bind_with(
      params, j->program,
      joined(joined(constant_specs(j->consts), ins), only(ins, nonzero_mask(dx))),
      joined(outs, only(outs, j->nonzero_out)), concat(concat(j->consts, x), nonzero_only(dx)));
  return {slice_of(out, 0, outs.size()), spread(j->nonzero_out, out, outs.size())};
}

// Residuals without dimensions leave the body with one, so that they can be put together.
struct Residuals {
  ProgramPtr known, linear;
  std::vector<std::optional<std::size_t>> from_output;  // per residual of the known program
};
Residuals with_dimensions(const LinearizedProgram& lin, std::size_t outputs) {
  Residuals result;
  const Program& p = *lin.known;
  std::unordered_map<Var, std::size_t> output_at;
  for (std::size_t k = 0; k < outputs; ++k) {
    if (p.out[k].is_var()) output_at.emplace(p.out[k].var, k);
  }
  for (std::size_t k = outputs; k < p.out.size(); ++k) {
    const auto same = p.out[k].is_var() ? output_at.find(p.out[k].var) : output_at.end();
    result.from_output.push_back(same == output_at.end() ? std::nullopt
                                                         : std::optional(same->second));
  }
  auto known = [&](const Arrays& args) {
    const Arrays all = eval(p, args);
    Arrays out = slice_of(all, 0, outputs);
    for (std::size_t r = 0; r < result.from_output.size(); ++r) {
      if (result.from_output[r]) continue;
      const Array& value = all[outputs + r];
      out.push_back(value.ndim() == 0 ? lax::broadcast_in_dim(value, {1}, {}) : value);
    }
    return out;
  };
  result.known =
      trace(known, p.in_types(), {.transform = "shard_map", .name = p.name, .body = true}).program;
  Types in = lin.linear->in_types();
  std::vector<bool> is_scalar(in.size());
  for (std::size_t i = 0, r = 0; i < lin.forwarded.size(); ++i) {
    if (lin.forwarded[i]) continue;
    is_scalar[i] = !result.from_output[r++] && in[i].shape.empty();
    if (is_scalar[i]) in[i].shape = {1};
  }
  auto linear = [&](const Arrays& args) {
    Arrays scalars = args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (is_scalar[i]) scalars[i] = lax::squeeze(args[i], {0});
    }
    return eval(*lin.linear, scalars);
  };
  result.linear =
      trace(linear, in, {.transform = "shard_map", .name = p.name, .body = true}).program;
  return result;
}

Duals shard_map_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  const Program& body = *body_of(params);
  const ShardSpecs &ins = in_specs_of(params), &outs = out_specs_of(params);
  const auto lin = linearize_program(body, nonzero_mask(dx), {}, std::vector<bool>(x.size(), true));
  const auto parts = derive<Residuals>(*lin->known, "with_dimensions",
                                       [&] { return with_dimensions(*lin, body.out.size()); });
  ShardSpecs known_outs = outs;
  const Types made = parts->known->out_types();
  for (std::size_t k = outs.size(); k < made.size(); ++k) {
    ShardSpec own = spec_of_constant(made[k]);
    own.is_local = true;
    known_outs.push_back(std::move(own));
  }
  const Arrays out = bind_with(params, parts->known, joined(constant_specs(lin->consts), ins),
                               known_outs, concat(lin->consts, x));
  Arrays linear_args;
  ShardSpecs linear_ins;
  std::size_t residual = 0, next = outs.size();
  for (const auto& input : lin->forwarded) {
    if (input) {
      linear_args.push_back(x[*input]);
      linear_ins.push_back(ins[*input]);
      continue;
    }
    const std::size_t k = parts->from_output[residual] ? *parts->from_output[residual] : next++;
    ++residual;
    linear_args.push_back(out[k]);
    linear_ins.push_back(known_outs[k]);
  }
  const Arrays tangents =
      bind_with(params, parts->linear, joined(linear_ins, only(ins, nonzero_mask(dx))),
                only(outs, lin->nonzero), concat(linear_args, nonzero_only(dx)));
  return {slice_of(out, 0, outs.size()), spread(lin->nonzero, tangents)};
}

Tangents shard_map_transpose(const Tangents& ct, const Primals& x, const Types& in,
                             const Params& params) {
  const ShardSpecs &ins = in_specs_of(params), &outs = out_specs_of(params);
  std::vector<bool> is_linear;
  Arrays args;
  for (const auto& a : x) {
    is_linear.push_back(!a);
    if (a) args.push_back(*a);
  }
  std::vector<bool> is_known = is_linear;
  is_known.flip();
  const auto t = transposed_program(*body_of(params), is_linear, nonzero_mask(ct));
  const ShardSpecs back_ins =
      joined(joined(constant_specs(t->consts), only(ins, is_known)), only(outs, nonzero_mask(ct)));
  const Arrays back =
      bind_with(params, t->program, back_ins, only(only(ins, is_linear), t->nonzero),
                concat(concat(t->consts, args), nonzero_only(ct)));
  Tangents result(in.size());
  std::size_t k = 0, next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_linear[i] && t->nonzero[k++]) result[i] = back[next++];
  }
  return result;
}

// The spec with a dimension that is not divided at the mapped axis.
ShardSpec mapped_spec(ShardSpec spec, const Axis& axis) {
  if (!axis || spec.is_local || static_cast<std::size_t>(*axis) >= spec.dims.size()) return spec;
  spec.dims.insert(spec.dims.begin() + *axis, std::vector<int>{});
  return spec;
}
Batched shard_map_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                        const Params& params) {
  const auto b = batched_program(*body_of(params), axes, n, OutAxes::natural);
  ShardSpecs ins = constant_specs(b->consts), outs;
  for (std::size_t i = 0; i < x.size(); ++i)
    ins.push_back(mapped_spec(in_specs_of(params)[i], axes[i]));
  for (std::size_t k = 0; k < b->out_axes.size(); ++k)
    outs.push_back(mapped_spec(out_specs_of(params)[k], b->out_axes[k]));
  return {bind_with(params, b->program, ins, outs, concat(b->consts, x)), b->out_axes};
}

std::optional<Equation> shard_map_dce(const Program&, const Equation& e,
                                      const std::vector<bool>& used) {
  const auto live = dce_body(body_of(e.params), used);
  Equation shrunk = with_only(e, live.used_inputs, used);
  shrunk.params = with_specs(e.params, only(in_specs_of(e.params), live.used_inputs),
                             only(out_specs_of(e.params), used))
                      .with("jaxpr", live.program);
  return shrunk;
}

void adjust_specs(const CallParts& parts, Params& known, Params& staged) {
  const ShardSpecs ins = in_specs_of(known), outs = out_specs_of(known);
  std::vector<bool> is_known_in = parts.unknown, is_known_out = parts.unknown_out;
  is_known_in.flip();
  is_known_out.flip();
  const ShardSpecs known_ins = only(ins, is_known_in);
  ShardSpecs known_outs = only(outs, is_known_out), staged_ins;
  for (std::size_t r = 0; r < parts.residuals.size(); ++r) {
    const OutputSource& from = parts.from[r];
    if (!from.is_returned()) {
      staged_ins.push_back(from.is_input() ? known_ins[from.index] : known_outs[from.index]);
    } else {
      ShardSpec own = spec_of_constant(parts.residuals[r]);
      own.is_local = true;
      staged_ins.push_back(own);
      known_outs.push_back(std::move(own));
    }
  }
  staged_ins = joined(std::move(staged_ins), only(ins, parts.available));
  known = with_specs(known, known_ins, std::move(known_outs));
  staged = with_specs(staged, std::move(staged_ins), only(outs, parts.available_out));
}
void shard_map_partial_eval(const Equation& e, Split& s) {
  split_call(e, s, {.body = "jaxpr", .forward = true, .adjust_parts = adjust_specs});
}

Params not_from_text(const Params&, const Types&, const Types&) {
  fail<TypeError>("parse: a mesh belongs to a running program, got a shard_map in a text");
}

constexpr ParamRule shard_map_rules[] = {{"check_vma", form::flag, "True"},
                                         {"in_specs", form::object},
                                         {"jaxpr", form::program},
                                         {"mesh", form::object},
                                         {"newly_manual_axes", form::text, unused},
                                         {"out_specs", form::object}};

}  // namespace

constinit const Primitive shard_map_p{.name = "shard_map",
                                      .kind = Kind::call,
                                      .type = shard_map_type,
                                      .eval = shard_map_eval,
                                      .jvp = shard_map_jvp,
                                      .linearize = shard_map_linearize,
                                      .transpose = shard_map_transpose,
                                      .batch = shard_map_batch,
                                      .partial_eval = shard_map_partial_eval,
                                      .dce = shard_map_dce,
                                      .param_rules = shard_map_rules,
                                      .parsed_params = not_from_text};

Arrays bind_shard_map(const ProgramPtr& body, MeshPtr mesh, ShardSpecs in, ShardSpecs out,
                      const Arrays& args) {
  return shard_map_p.bind(
      args, {{"check_vma", true},
             {"in_specs", OpaquePtr(std::make_shared<const SpecsParam>(std::move(in), mesh))},
             {"jaxpr", body},
             {"mesh", OpaquePtr(std::make_shared<const MeshParam>(mesh))},
             {"out_specs", OpaquePtr(std::make_shared<const SpecsParam>(std::move(out), mesh))}});
}

Program open_shard_maps(const Program& p) {
  Program out = p;
  for (Equation& e : out.eqns) {
    if (e.prim == &shard_map_p) {
      Types in;
      for (const Atom& a : e.in) in.push_back(p.type(a));
      e.params = {{"name", std::string("shard_map")}, {"jaxpr", opened(e.params, in)}};
      e.prim = &jit_p;
    }
    e.params = map_programs(e.params, "open_shard_maps", open_shard_maps);
  }
  return out;
}

}  // namespace reprise
