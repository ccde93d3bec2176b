#include "transform/jvp.h"

#include "ops/lax.h"
#include "ops/records.h"
#include "program/check.h"
#include "program/varying.h"
#include "transform/dce.h"
#include "transform/forward.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {
namespace {

// One walk serves jvp and linearize: operations on tangents go wherever the tangents live.
class DualWalk {
 public:
  DualWalk(const Program& p, bool linear, const LinearizeOptions& options)
      : p_(p),
        linear_(linear),
        options_(options),
        value_(p.types.size()),
        tangent_(p.types.size()) {}

  Duals run(const Arrays& primals, const Tangents& tangents) {
    for (std::size_t i = 0; i < p_.in.size(); ++i) {
      value_[at(p_.in[i])] = primals[i];
      tangent_[at(p_.in[i])] = tangents[i];
    }
    const auto& dead = last_reads(p_);
    for (std::size_t i = 0; i < p_.eqns.size(); ++i) {
      step(p_.eqns[i]);
      for (Var v : dead[i]) {
        value_[at(v)] = Array();
        tangent_[at(v)].reset();
      }
    }
    Duals result;
    for (const Atom& a : p_.out) {
      result.out.push_back(read(a));
      result.tangents.push_back(a.is_var() ? tangent_[at(a.var)] : std::nullopt);
    }
    return result;
  }

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }

  Array read(const Atom& a) const {
    if (a.is_var()) return value_[at(a.var)];
    Literal l = a.literal;
    l.promoted = l.promoted && options_.promoted_literals;
    return make_number(l);
  }

  void step(const Equation& e) {
    const AtEquation scope(e.at, e.phase);
    Arrays x;
    Tangents dx;
    x.reserve(e.in.size());
    dx.reserve(e.in.size());
    for (const Atom& a : e.in) {
      x.push_back(read(a));
      dx.push_back(a.is_var() ? tangent_[at(a.var)] : std::nullopt);
    }
    const bool active =
        std::any_of(dx.begin(), dx.end(), [](const Tangent& t) { return t.has_value(); });
    Duals y = active ? differentiate(e, x, dx) : Duals{primal(e, x), Tangents(e.out.size())};
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      value_[at(e.out[k])] = std::move(y.out[k]);
      if (is_floating(p_.type(e.out[k]).dtype)) tangent_[at(e.out[k])] = std::move(y.tangents[k]);
    }
  }

  Arrays primal(const Equation& e, const Arrays& x) const {
    // An enclosing transform must still see the operation: numbers stand in only for numbers.
    const bool traced =
        std::any_of(x.begin(), x.end(), [](const Array& a) { return is_traced(a); });
    if (options_.known != nullptr && !options_.known->empty() && !traced && !e.out.empty()) {
      Arrays y;
      for (Var v : e.out) {
        if (at(v) >= options_.known->size() || !(*options_.known)[at(v)]) break;
        y.push_back(*(*options_.known)[at(v)]);
      }
      if (y.size() == e.out.size()) return y;
    }
    return e.prim->bind(x, e.params);
  }

  Duals differentiate(const Equation& e, const Arrays& x, const Tangents& dx) const {
    const Primitive& prim = *e.prim;
    if (linear_ && prim.linearize) return prim.linearize(x, dx, e.params);
    if (prim.jvp) return prim.jvp(x, dx, e.params);
    if (!prim.tangent) no_such_rule(prim, "derivative");
    Arrays y = primal(e, x);
    Tangents dy = prim.tangent(x, dx, y, e.params);
    return {std::move(y), std::move(dy)};
  }

  const Program& p_;
  bool linear_;
  LinearizeOptions options_;
  Arrays value_;
  Tangents tangent_;
};

}  // namespace

Type tangent_type(const Type& t) {
  Type out = t;
  if (!is_floating(t.dtype)) out.dtype = Dtype::float0;
  return out;
}

Array instantiate_zeros(const Type& t) { return lax::zeros(tangent_type(t)); }

Array linear_zeros(const Tangents& beside, const Type& t) {
  const Type type = tangent_type(t);
  const Array zero = make_number(make_literal(type.dtype, 0));
  if (type.shape.empty() && type.varying == nullptr) return zero;
  Arrays tangents;
  for (const Tangent& dx : beside) {
    if (dx) tangents.push_back(*dx);
  }
  Trace* const linear = target_trace(tangents);
  REPRISE_INVARIANT(linear != nullptr);
  Type same = type;
  same.varying = nullptr;
  const Array zeros =
      linear->record(broadcast_in_dim_p, {zero},
                     {{"broadcast_dimensions", Ints{}}, {"shape", type.shape}}, {same})[0];
  return with_varying(zeros, type.varying);
}

Duals jvp(const Program& p, const Arrays& primals, const Tangents& tangents) {
  return DualWalk(p, /*linear=*/false, {}).run(primals, tangents);
}

std::shared_ptr<const JvpProgram> jvp_program(const Program& p, const std::vector<bool>& active,
                                              const std::vector<bool>& instantiate) {
  const std::string key = mask_key("jvp", active) + mask_key("/", instantiate);
  return derive<JvpProgram>(p, key, [&] {
    Types in = p.in_types();
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (active[i]) in.push_back(tangent_type(in[i]));
    }
    JvpProgram result;
    auto body = [&](const Arrays& args) {
      const auto primals = static_cast<std::ptrdiff_t>(p.in.size());
      Tangents tangents(p.in.size());
      std::size_t next = p.in.size();
      for (std::size_t i = 0; i < active.size(); ++i) {
        if (active[i]) tangents[i] = args[next++];
      }
      Duals d = jvp(p, Arrays(args.begin(), args.begin() + primals), tangents);
      Arrays out = d.out;
      for (std::size_t i = 0; i < d.out.size(); ++i) {
        if (!d.tangents[i] && i < instantiate.size() && instantiate[i]) {
          d.tangents[i] = instantiate_zeros(d.out[i].type());
        }
        result.nonzero_out.push_back(d.tangents[i].has_value());
        if (d.tangents[i]) out.push_back(*d.tangents[i]);
      }
      return out;
    };
    Traced traced = trace(body, in, {.transform = "jvp", .name = p.name, .body = true});
    result.program = std::move(traced.program);
    result.consts = std::move(traced.consts);
    return result;
  });
}

namespace {
// The constants that a program reads, in order of first use.
std::vector<std::size_t> constants_by_use(const Program& p) {
  std::unordered_map<Var, std::size_t> unseen;
  for (std::size_t i = 0; i < p.num_consts; ++i) unseen[p.in[i]] = i;
  std::vector<std::size_t> order;
  auto use = [&](const Atom& a) {
    const auto it = a.is_var() ? unseen.find(a.var) : unseen.end();
    if (it == unseen.end()) return;
    order.push_back(it->second);
    unseen.erase(it);
  };
  for (const Equation& e : p.eqns) {
    for (const Atom& a : e.in) use(a);
  }
  for (const Atom& a : p.out) use(a);
  return order;
}
}  // namespace

Linearized linearize(const Program& p, const Arrays& primals, const std::vector<bool>& active,
                     const LinearizeOptions& options) {
  Trace linear({.transform = "linearize", .name = p.name}, /*current=*/false);
  Tangents tangents(p.in.size());
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (active[i]) tangents[i] = linear.input(tangent_type(primals[i].type()));
  }
  Duals d = DualWalk(p, /*linear=*/true, options).run(primals, tangents);
  for (std::size_t i = 0; i < options.differentiated.size(); ++i) {
    if (!options.differentiated[i]) d.tangents[i].reset();
  }
  for (std::size_t i = 0; i < options.instantiate.size(); ++i) {
    if (options.instantiate[i] && !d.tangents[i])
      d.tangents[i] = instantiate_zeros(d.out[i].type());
  }
  Linearized result;
  result.out = std::move(d.out);
  Arrays out;
  for (const Tangent& t : d.tangents) {
    result.nonzero.push_back(t.has_value());
    if (t) out.push_back(*t);
  }
  Traced traced = linear.finish(out);
  // Only what the linear program still reads after dead code is gone is a residual.
  const std::size_t consts = traced.program->num_consts;
  DceProgram live = dce(*traced.program, std::vector<bool>(out.size(), true));
  const std::vector<std::size_t> order = constants_by_use(live.program);
  std::vector<Var> in;
  for (std::size_t i : order) {
    result.residuals.push_back(traced.consts[i]);
    in.push_back(live.program.in[i]);
  }
  in.insert(in.end(), live.program.in.begin() + static_cast<std::ptrdiff_t>(consts),
            live.program.in.end());
  live.program.in = std::move(in);
  live.program.num_consts = order.size();
  result.linear = std::make_shared<const Program>(std::move(live.program));
  return result;
}

std::shared_ptr<const LinearizedProgram> linearize_program(const Program& p,
                                                           const std::vector<bool>& active,
                                                           const std::vector<bool>& instantiate,
                                                           const std::vector<bool>& may_forward) {
  const std::string key =
      mask_key("linearize", active) + mask_key("/", instantiate) + mask_key("/", may_forward);
  return derive<LinearizedProgram>(p, key, [&] {
    LinearizedProgram result;
    auto body = [&](const Arrays& primals) {
      Linearized lin = linearize(p, primals, active, {.instantiate = instantiate});
      result.linear = as_body(lin.linear);
      result.nonzero = lin.nonzero;
      lin.out.insert(lin.out.end(), lin.residuals.begin(), lin.residuals.end());
      return lin.out;
    };
    Traced traced =
        trace(body, p.in_types(), {.transform = "linearize", .name = p.name, .body = true});
    const std::size_t consts = traced.consts.size();
    std::vector<bool> inputs(consts, false);
    inputs.insert(inputs.end(), may_forward.begin(), may_forward.end());
    const Forwarded kept =
        forward_outputs(*traced.program, {p.out.size(), Forwarding::never, false, inputs});
    for (std::size_t k = p.out.size(); k < kept.from.size(); ++k) {
      const OutputSource& from = kept.from[k];
      result.forwarded.push_back(from.is_input() ? std::optional(from.index - consts)
                                                 : std::nullopt);
    }
    result.extra_outputs = kept.program->out.size() - p.out.size();
    DceProgram live = dce(*kept.program, std::vector<bool>(kept.program->out.size(), true));
    result.known = std::make_shared<const Program>(std::move(live.program));
    result.consts = std::move(traced.consts);
    return result;
  });
}

}  // namespace reprise
