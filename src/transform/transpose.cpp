#include "transform/transpose.h"

#include "ops/lax.h"

#include <algorithm>

namespace reprise {
namespace {

class BackwardWalk {
 public:
  BackwardWalk(const Program& p, Primals args)
      : p_(p), value_(p.types.size()), ct_(p.types.size()) {
    for (std::size_t i = 0; i < p.in.size(); ++i) value_[at(p.in[i])] = std::move(args[i]);
    linear_.resize(p.types.size());
    for (Var v : p.in) linear_[at(v)] = !value_[at(v)].has_value();
  }

  Tangents run(Tangents cts, Tangents initial) {
    std::size_t next = 0;
    for (Var v : p_.in) {
      if (linear_[at(v)] && next < initial.size()) ct_[at(v)] = std::move(initial[next++]);
    }
    std::vector<const Equation*> linear = evaluate_nonlinear();
    for (std::size_t i = 0; i < p_.out.size(); ++i) accumulate(p_.out[i], std::move(cts[i]));
    const std::vector<std::vector<Var>> dead = last_reads_backward(linear);
    for (std::size_t i = linear.size(); i-- > 0;) {
      transpose(*linear[i]);
      for (Var v : dead[i]) value_[at(v)].reset();
    }
    Tangents result;
    for (Var v : p_.in) {
      if (linear_[at(v)]) result.push_back(ct_[at(v)]);
    }
    return result;
  }

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }
  bool is_linear(const Atom& a) const { return a.is_var() && linear_[at(a.var)]; }

  Primals read(const Equation& e) const {
    Primals x;
    x.reserve(e.in.size());
    for (const Atom& a : e.in) {
      if (is_linear(a)) {
        x.emplace_back();
      } else {
        x.push_back(a.is_var() ? value_[at(a.var)] : make_number(a.literal));
      }
    }
    return x;
  }

  std::vector<const Equation*> evaluate_nonlinear() {
    std::vector<const Equation*> linear;
    for (const Equation& e : p_.eqns) {
      if (std::any_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_linear(a); })) {
        linear.push_back(&e);
        for (Var v : e.out) linear_[at(v)] = true;
        continue;
      }
      const AtEquation scope(e.at);
      Arrays x;
      for (std::optional<Array>& a : read(e)) x.push_back(std::move(*a));
      Arrays y = e.prim->bind(x, e.params);
      for (std::size_t k = 0; k < y.size(); ++k) value_[at(e.out[k])] = std::move(y[k]);
    }
    return linear;
  }

  // Walking backwards a residual is read for the last time by its first reader.
  std::vector<std::vector<Var>> last_reads_backward(
      const std::vector<const Equation*>& linear) const {
    std::vector<std::vector<Var>> reads(linear.size());
    std::vector<bool> seen(p_.types.size());
    for (std::size_t i = 0; i < linear.size(); ++i) {
      for (const Atom& a : linear[i]->in) {
        if (!a.is_var() || linear_[at(a.var)] || seen[at(a.var)]) continue;
        seen[at(a.var)] = true;
        reads[i].push_back(a.var);
      }
    }
    return reads;
  }

  void accumulate(const Atom& a, Tangent ct) {
    if (!is_linear(a) || !ct) return;
    Tangent& sum = ct_[at(a.var)];
    sum = add_tangents(sum, ct);
  }

  void transpose(const Equation& e) {
    Tangents ct;
    bool any = false;
    for (Var v : e.out) {
      any = any || ct_[at(v)].has_value();
      ct.push_back(std::move(ct_[at(v)]));
      ct_[at(v)].reset();
    }
    if (!any) return;
    const AtEquation scope(e.at);
    if (!e.prim->transpose) {
      no_such_rule(*e.prim, "transpose", "the function is not linear in this operand");
    }
    Types in;
    in.reserve(e.in.size());
    for (const Atom& a : e.in) in.push_back(p_.type(a));
    Tangents back = e.prim->transpose(ct, read(e), in, e.params);
    for (std::size_t i = 0; i < e.in.size(); ++i) accumulate(e.in[i], std::move(back[i]));
  }

  const Program& p_;
  Primals value_;
  Tangents ct_;
  std::vector<bool> linear_;
};

}  // namespace

Tangents backward(const Program& linear, Primals args, Tangents cts, Tangents initial) {
  const InPhase scope(Phase::backward);
  return BackwardWalk(linear, std::move(args)).run(std::move(cts), std::move(initial));
}

std::shared_ptr<const TransposedProgram> transposed_program(const Program& linear,
                                                            const std::vector<bool>& is_linear,
                                                            const std::vector<bool>& given,
                                                            const std::vector<bool>& instantiate) {
  const std::string key =
      mask_key("transpose", is_linear) + mask_key("/", given) + mask_key("/", instantiate);
  return derive<TransposedProgram>(linear, key, [&] {
    Types in;
    const Types inputs = linear.in_types(), outputs = linear.out_types();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_linear[i]) in.push_back(inputs[i]);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (given[k]) in.push_back(outputs[k]);
    }
    TransposedProgram result;
    auto body = [&](const Arrays& args) {
      std::size_t next = 0;
      Primals x;
      for (bool lin : is_linear) x.push_back(lin ? std::nullopt : std::optional(args[next++]));
      Tangents cts;
      for (bool g : given) cts.push_back(g ? Tangent(args[next++]) : std::nullopt);
      Arrays out;
      Tangents back = backward(linear, std::move(x), std::move(cts));
      std::size_t input = 0;
      for (std::size_t k = 0; k < back.size(); ++k, ++input) {
        while (!is_linear[input]) ++input;
        if (!back[k] && k < instantiate.size() && instantiate[k])
          back[k] = lax::zeros(inputs[input]);
        result.nonzero.push_back(back[k].has_value());
        if (back[k]) out.push_back(*back[k]);
      }
      return out;
    };
    Traced traced = trace(body, in, {.transform = "transpose", .name = linear.name, .body = true});
    result.program = std::move(traced.program);
    result.consts = std::move(traced.consts);
    return result;
  });
}

}  // namespace reprise
