#include "transform/vmap.h"

#include "ops/lax.h"

#include <algorithm>

namespace reprise {

Array axis_at(const Array& x, const Axis& from, std::int64_t to, std::int64_t n) {
  if (from) return lax::moveaxis(x, *from, to);
  Shape shape = x.shape();
  shape.insert(shape.begin() + to, n);
  lax::Ints dims = lax::iota_ints(x.ndim());
  for (std::int64_t& d : dims) d += d >= to ? 1 : 0;
  return lax::broadcast_in_dim(x, shape, dims);
}

Batched vmap(const Program& p, const Arrays& args, const Axes& axes, std::int64_t n) {
  Arrays value(p.types.size());
  Axes axis(p.types.size());
  auto at = [](Var v) { return static_cast<std::size_t>(v); };
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    value[at(p.in[i])] = args[i];
    axis[at(p.in[i])] = axes[i];
  }
  const auto& dead = last_reads(p);
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    const Equation& e = p.eqns[i];
    const AtEquation scope(e.at, e.phase);
    Arrays x;
    Axes x_axes;
    for (const Atom& a : e.in) {
      x.push_back(a.is_var() ? value[at(a.var)] : make_number(a.literal));
      x_axes.push_back(a.is_var() ? axis[at(a.var)] : std::nullopt);
    }
    const bool mapped =
        std::any_of(x_axes.begin(), x_axes.end(), [](const Axis& m) { return m.has_value(); });
    if (mapped && !e.prim->batch) no_such_rule(*e.prim, "batching");
    Batched y = mapped ? e.prim->batch(*e.prim, x, x_axes, n, e.params)
                       : Batched{e.prim->bind(x, e.params), Axes(e.out.size())};
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      value[at(e.out[k])] = std::move(y.out[k]);
      axis[at(e.out[k])] = y.axes[k];
    }
    for (Var v : dead[i]) value[at(v)] = Array();
  }
  Batched result;
  for (const Atom& a : p.out) {
    result.out.push_back(a.is_var() ? value[at(a.var)] : make_number(a.literal));
    result.axes.push_back(a.is_var() ? axis[at(a.var)] : std::nullopt);
  }
  return result;
}

std::shared_ptr<const BatchedProgram> batched_program(const Program& p, const Axes& axes,
                                                      std::int64_t n, OutAxes out_axes,
                                                      const std::vector<bool>& force) {
  std::string key = mask_key(str("vmap", n, out_axes == OutAxes::front ? "f" : "n"), force);
  for (const Axis& a : axes) key += a ? str("/", *a) : "/-";
  return derive<BatchedProgram>(p, key, [&] {
    Types in = p.in_types();
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (axes[i]) in[i].shape.insert(in[i].shape.begin() + *axes[i], n);
    }
    BatchedProgram result;
    auto body = [&](const Arrays& args) {
      Batched b = vmap(p, args, axes, n);
      for (std::size_t k = 0; k < b.out.size(); ++k) {
        const bool forced = k < force.size() && force[k];
        if (forced || (b.axes[k] && out_axes == OutAxes::front)) {
          b.out[k] = axis_at(b.out[k], b.axes[k], 0, n);
          b.axes[k] = 0;
        }
      }
      result.out_axes = b.axes;
      return b.out;
    };
    Traced traced = trace(body, in, {.transform = "vmap", .name = p.name, .body = true});
    result.program = std::move(traced.program);
    result.consts = std::move(traced.consts);
    return result;
  });
}

}  // namespace reprise
