#include "transform/simplify.h"

#include "ops/records.h"
#include "transform/rewrite.h"

#include <algorithm>
#include <optional>

namespace reprise {
namespace {

class Simplifier {
 public:
  explicit Simplifier(const Program& p) : p_(p), rewrite_(p), made_by_(p.types.size(), nullptr) {}

  Program run() {
    for (const Equation& e : p_.eqns) {
      Equation now = e;
      now.in = rewrite_.read_all(e.in);
      now.params = map_programs(e.params, "simplify", simplify);
      if (e.prim == &optimization_barrier_p) {  // one of many values at a time
        for (std::size_t i = 0; i < e.out.size(); ++i) rewrite_.replace(e.out[i], now.in[i]);
        continue;
      }
      shorten(now);
      if (const std::optional<Atom> value = known_value(now)) {
        rewrite_.replace(e.out[0], *value);
        continue;
      }
      for (Var v : now.out) made_by_[static_cast<std::size_t>(v)] = &e;
      rewrite_.append(std::move(now));
    }
    return rewrite_.finish();
  }

 private:
  const Equation* producer(const Atom& a) const {
    return a.is_var() ? made_by_[static_cast<std::size_t>(a.var)] : nullptr;
  }
  static bool is_literal(const Atom& a, double value) {
    if (a.is_var()) return false;
    const Literal wanted = make_literal(a.literal.dtype, value, a.literal.weak_type);
    return wanted.natural == a.literal.natural;
  }

  // Two reshapes or transposes in a row become one.
  void shorten(Equation& e) const {
    if (e.prim != &reshape_p && e.prim != &transpose_p) return;
    const Equation* before = producer(e.in[0]);
    if (before == nullptr || before->prim != e.prim) return;
    if (e.prim == &transpose_p) {
      const Ints &first = before->params.get<Ints>("permutation"),
                 &second = e.params.get<Ints>("permutation");
      Ints both;
      for (std::int64_t d : second) both.push_back(first[static_cast<std::size_t>(d)]);
      e.params = e.params.with("permutation", both);
    }
    e.in = rewrite_.read_all(before->in);
  }

  // The atom an equation is equal to, if there is one.
  std::optional<Atom> known_value(const Equation& e) const {
    if (e.out.size() != 1) return std::nullopt;
    const Type& out = p_.type(e.out[0]);
    const auto same_type = [&](const Atom& a) {
      const Type t = p_.type(a);
      return t.dtype == out.dtype && t.shape == out.shape;
    };
    const Primitive* prim = e.prim;
    if (prim == &name_p || prim == &copy_p || prim == &stop_gradient_p) return e.in[0];
    if (prim == &pvary_p && !is_result(e.out[0])) return e.in[0];  // types of results stay
    if ((prim == &convert_element_type_p || prim == &reshape_p) && same_type(e.in[0]))
      return e.in[0];
    if (prim == &transpose_p && is_identity(e.params.get<Ints>("permutation"))) return e.in[0];
    if (prim == &integer_pow_p && e.params.get<std::int64_t>("y") == 1) return e.in[0];
    if (prim == &mul_p && is_literal(e.in[1], 1) && same_type(e.in[0])) return e.in[0];
    if (prim == &mul_p && is_literal(e.in[0], 1) && same_type(e.in[1])) return e.in[1];
    if (prim == &div_p && is_literal(e.in[1], 1) && same_type(e.in[0])) return e.in[0];
    if (prim == &neg_p) {
      const Equation* before = producer(e.in[0]);
      if (before != nullptr && before->prim == &neg_p) return rewrite_.read(before->in[0]);
    }
    if (prim == &select_n_p && all_cases_equal(e) && same_type(e.in[1])) return e.in[1];
    return folded(e, out);
  }

  bool is_result(Var v) const {
    return std::find(p_.out.begin(), p_.out.end(), Atom::of(v)) != p_.out.end();
  }
  static bool is_identity(const Ints& permutation) {
    return std::is_sorted(permutation.begin(), permutation.end());
  }
  static bool all_cases_equal(const Equation& e) {
    return std::all_of(e.in.begin() + 1, e.in.end(), [&](const Atom& a) { return a == e.in[1]; });
  }

  // A scalar computed from literals alone is a literal.
  std::optional<Atom> folded(const Equation& e, const Type& out) const {
    const bool literals =
        std::none_of(e.in.begin(), e.in.end(), [](const Atom& a) { return a.is_var(); });
    if (e.prim->kind != Kind::elementwise || !literals || e.in.empty() || !out.shape.empty())
      return std::nullopt;
    Arrays x;
    for (const Atom& a : e.in) x.push_back(make_number(a.literal));
    const Array value = e.prim->eval(x, e.params, {out})[0];
    Literal l = load_literal(out.dtype, content(value).elements);
    l.weak_type = out.weak_type;
    return Atom::of(l);
  }

  const Program& p_;
  Rewriter rewrite_;
  std::vector<const Equation*> made_by_;  // by the equation of p_ that makes it, if it is kept
};

}  // namespace

Program simplify(const Program& p) { return Simplifier(p).run(); }

}  // namespace reprise
