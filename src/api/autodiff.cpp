// grad, vjp, linearize, jvp: trace the function, transform its program, evaluate in the context.
#include "reprise/autodiff.h"

#include "api/flat.h"
#include "api/linear_map.h"
#include "control/body.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "transform/jvp.h"
#include "transform/transpose.h"

#include <unordered_map>

namespace reprise::detail {
namespace {

std::vector<bool> behind_consts(std::size_t consts, const std::vector<bool>& active) {
  std::vector<bool> mask(consts, false);
  mask.insert(mask.end(), active.begin(), active.end());
  return mask;
}

void check_differentiable(const char* op, const Callee& f, const Arrays& args,
                          const std::vector<bool>& active) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (active[i] && !is_floating(args[i].dtype())) {
      fail_with_hint<TypeError>("pass it as an argument that is not differentiated, or use vjp", op,
                                ": the argument must be floating, got ", args[i].type(), " (",
                                f.arg_names[i], ")");
    }
  }
}

void check_loss(const Types& out, bool with_aux) {
  if (out.empty() || (out.size() != 1 && !with_aux)) {
    fail_with_hint<TypeError>("return std::pair(loss, aux) and pass rp::has_aux",
                              "grad: the function must return one scalar, got ", out.size(),
                              " outputs");
  }
  if (!out[0].shape.empty()) {
    fail_with_hint<TypeError>("reduce the result to a scalar, for example with rp::sum",
                              "grad: the function must return a scalar, got ", out[0]);
  }
  if (!is_floating(out[0].dtype)) {
    fail<TypeError>("grad: the function must return a floating scalar, got ", out[0]);
  }
}

Array value_or_zeros(const Tangent& t, const Type& type) {
  return t ? *t : instantiate_zeros(type);
}

}  // namespace

GradOutputs value_and_grad(const Callee& f, const Arrays& args, const std::vector<bool>& active,
                           bool with_aux) {
  const AtUser at(f.at);
  check_differentiable("grad", f, args, active);
  const Traced t = trace_callee(f, "grad", leaf_types(args), &args);
  check_loss(t.program->out_types(), with_aux);
  std::vector<bool> is_loss(t.program->out.size(), false);  // aux is not differentiated
  is_loss[0] = true;
  Linearized lin =
      linearize(*t.program, concat(t.consts, args), behind_consts(t.consts.size(), active),
                {.promoted_literals = true, .differentiated = is_loss, .known = &t.known});
  Tangents cts;
  if (lin.nonzero[0]) {
    const Type& loss = lin.out[0].type();
    Literal seed = make_literal(loss.dtype, 1, loss.weak_type);
    seed.promoted = true;  // JAX counts it as a residual of an outer derivative
    cts.emplace_back(make_number(seed));
  }
  Primals inputs(std::make_move_iterator(lin.residuals.begin()),
                 std::make_move_iterator(lin.residuals.end()));
  lin.residuals.clear();
  inputs.resize(lin.linear->in.size());
  const Tangents back = backward(*lin.linear, std::move(inputs), std::move(cts));
  GradOutputs result{finished(std::move(lin.out)), {}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (active[i]) result.grads.push_back(finished(value_or_zeros(back[next++], args[i].type())));
  }
  return result;
}

// ---------------------------------------------------------------------------------- vjp, linearize
namespace {

// Arguments in argument order, then the others in order of first use.
std::vector<std::size_t> presentation_order(const Arrays& residuals, const Arrays& args) {
  std::unordered_map<std::uint64_t, std::size_t> residual_at;
  for (std::size_t r = 0; r < residuals.size(); ++r) residual_at[identity(residuals[r])] = r;
  std::vector<std::size_t> order;
  std::vector<bool> placed(residuals.size());
  for (const Array& a : args) {
    const auto it = residual_at.find(identity(a));
    if (it == residual_at.end() || placed[it->second]) continue;
    placed[it->second] = true;
    order.push_back(it->second);
  }
  for (std::size_t r = 0; r < residuals.size(); ++r) {
    if (!placed[r]) order.push_back(r);
  }
  return order;
}

[[noreturn]] void wrong_tangent(const char* op, const Type& got, const Type& wanted) {
  fail<TypeError>(op, ": the type must match the value it belongs to, got ", got, " for ", wanted);
}

Tangent checked_tangent(const char* op, const Array& t, const Type& primal) {
  if (!is_floating(primal.dtype)) return std::nullopt;  // float0: carries nothing
  if (t.shape() != primal.shape || t.dtype() != primal.dtype) {
    const bool number = content(t).number() && t.shape() == primal.shape;
    if (!number || !is_floating(t.dtype())) wrong_tangent(op, t.type(), primal);
    return lax::convert(t, primal.dtype);
  }
  return t;
}

}  // namespace

std::vector<bool> floating_mask(const Arrays& args) {
  std::vector<bool> mask;
  for (const Array& a : args) mask.push_back(is_floating(a.dtype()));
  return mask;
}

VjpOutputs vjp(const Callee& f, const Arrays& args) { return vjp(f, args, floating_mask(args)); }

VjpOutputs vjp(const Callee& f, const Arrays& args, std::vector<bool> active) {
  const AtUser at(f.at);
  const Traced t = trace_callee(f, "vjp", leaf_types(args), &args);
  Linearized lin =
      linearize(*t.program, concat(t.consts, args), behind_consts(t.consts.size(), active),
                {.promoted_literals = true, .known = &t.known});
  auto map = std::make_shared<LinearMap>();
  map->linear = lin.linear;
  map->listed = presentation_order(lin.residuals, args);
  map->residuals = std::move(lin.residuals);
  map->in = leaf_types(args);
  map->out = leaf_types(lin.out);
  map->active = std::move(active);
  map->nonzero = lin.nonzero;
  return {finished(std::move(lin.out)), {std::move(map)}};
}

Arrays LinearMapPtr::transposed(const Arrays& cts, Location where) const {
  const AtUser at(where);
  const LinearMap& m = *map;
  if (cts.size() != m.out.size()) {
    fail<TypeError>("vjp: one cotangent per output is needed, got ", cts.size(), " for ",
                    m.out.size());
  }
  Tangents nonzero;
  for (std::size_t i = 0; i < cts.size(); ++i) {
    const Tangent ct = checked_tangent("vjp", cts[i], m.out[i]);
    if (m.nonzero[i]) nonzero.push_back(ct);
  }
  Primals inputs(m.residuals.begin(), m.residuals.end());
  inputs.resize(m.linear->in.size());
  const Tangents back = backward(*m.linear, std::move(inputs), std::move(nonzero));
  Arrays result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < m.in.size(); ++i) {
    const Tangent ct = m.active[i] ? back[next++] : std::nullopt;
    result.push_back(finished(value_or_zeros(ct, m.in[i])));
  }
  return result;
}

Arrays LinearMapPtr::forward(const Arrays& tangents, Location where) const {
  const AtUser at(where);
  const LinearMap& m = *map;
  if (tangents.size() != m.in.size()) {
    fail<TypeError>("linearize: one tangent per argument is needed, got ", tangents.size(), " for ",
                    m.in.size());
  }
  Arrays inputs = m.residuals;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    const Tangent t = checked_tangent("linearize", tangents[i], m.in[i]);
    if (m.active[i]) inputs.push_back(*t);
  }
  const Arrays out = eval(*m.linear, std::move(inputs));
  Arrays result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < m.out.size(); ++i) {
    result.push_back(finished(m.nonzero[i] ? out[next++] : instantiate_zeros(m.out[i])));
  }
  return result;
}

std::vector<Residual> LinearMapPtr::residuals() const {
  std::vector<Residual> list;
  for (std::size_t r : map->listed) list.push_back({map->residuals[r].type(), map->residuals[r]});
  return list;
}
Jaxpr LinearMapPtr::linear_jaxpr() const { return {map->linear, map->residuals}; }

std::pair<Arrays, Arrays> jvp(const Callee& f, const Arrays& primals, const Arrays& tangents) {
  const AtUser at(f.at);
  if (primals.size() != tangents.size()) {
    fail<TypeError>("jvp: one tangent per primal is needed, got ", tangents.size(), " for ",
                    primals.size());
  }
  const Traced t = trace_callee(f, "jvp", leaf_types(primals), &primals);
  Tangents dx(t.consts.size());
  for (std::size_t i = 0; i < primals.size(); ++i) {
    dx.push_back(checked_tangent("jvp", tangents[i], primals[i].type()));
  }
  Duals d = reprise::jvp(*t.program, concat(t.consts, primals), dx);
  Arrays out_tangents;
  for (std::size_t i = 0; i < d.out.size(); ++i) {
    out_tangents.push_back(finished(value_or_zeros(d.tangents[i], d.out[i].type())));
  }
  return {finished(std::move(d.out)), std::move(out_tangents)};
}

Array jacobian_basis(const Type& t) {
  const std::int64_t n = t.size();
  const Array row = lax::iota(Dtype::i32, {n, n}, 0);
  const Array column = lax::iota(Dtype::i32, {n, n}, 1);
  const Array shifted = lax::add(row, lax::const_like(row, 0));
  const Array same = lax::eq(shifted, column);
  const Array identity_matrix = lax::convert(same, t.dtype);
  Array units = lax::split(identity_matrix, {n}, 1)[0];
  Shape shape = t.shape;
  shape.insert(shape.begin(), n);
  units = lax::reshape(units, shape);
  return convert_element_type_p.bind1({units}, {{"new_dtype", t.dtype}, {"weak_type", false}});
}

Array jacobian_shape(const Array& stacked, const Type& unit, bool unit_first) {
  Shape rest(stacked.shape().begin() + 1, stacked.shape().end());
  Array j = stacked;
  if (unit_first) j = lax::moveaxis(j, 0, j.ndim() - 1);  // pushed tangents: the unit axis is last
  j = lax::split(j, {unit.size()}, unit_first ? j.ndim() - 1 : 0)[0];
  Shape shape = unit_first ? rest : unit.shape;
  const Shape& tail = unit_first ? unit.shape : rest;
  shape.insert(shape.end(), tail.begin(), tail.end());
  return lax::reshape(j, shape);
}

}  // namespace reprise::detail
