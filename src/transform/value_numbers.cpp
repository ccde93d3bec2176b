#include "transform/value_numbers.h"

#include "base/dtype.h"
#include "base/float_format.h"
#include "ops/records.h"
#include "program/equation_hash.h"

#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

namespace reprise {
namespace {

using Number = std::size_t;
using Numbers = std::vector<Number>;

struct Made {  // the first equation with these numbers
  const Equation* equation;
  Numbers in, out;
};

bool keeps_all_bits(const Params& params, Dtype d) {
  const auto exponent = params.get<std::int64_t>("exponent_bits");
  const auto mantissa = params.get<std::int64_t>("mantissa_bits");
  const FloatFormat format = float_format(d);
  return exponent >= format.exponent_bits && mantissa >= format.mantissa_bits;
}

class Numbering {
 public:
  Numbering(const Program& p, const Arrays& consts) : p_(p) {
    result_.of.resize(p.types.size());
    result_.computed.resize(p.types.size());
    for (std::size_t i = 0; i < p.in.size(); ++i) {
      of(p.in[i]) = i < consts.size() ? constant(consts[i]) : fresh();
    }
  }

  ValueNumbers run() {
    for (const Equation& e : p_.eqns) {
      const Numbers in = operands(e);
      const std::optional<Numbers> moved = moved_only(e, in);
      const Numbers& out = moved ? *moved : computed(e, in);
      for (std::size_t k = 0; k < e.out.size(); ++k) {
        of(e.out[k]) = out[k];
        result_.computed[static_cast<std::size_t>(e.out[k])] = !moved && e.prim != &unstack_p;
      }
    }
    return std::move(result_);
  }

 private:
  Number& of(Var v) { return result_.of[static_cast<std::size_t>(v)]; }
  Number fresh() { return result_.count++; }

  Number bytes(Dtype d, const Shape& shape, const void* elements, std::size_t size) {
    std::string key(size, '\0');
    if (size > 0) std::memcpy(key.data(), elements, size);
    const auto [it, is_new] = constants_.try_emplace({d, shape, std::move(key)}, 0);
    if (is_new) it->second = fresh();
    return it->second;
  }
  Number constant(const Array& x) {
    if (is_traced(x)) return fresh();
    return bytes(x.dtype(), x.shape(), content(x).elements, x.nbytes());
  }
  Number number(const Atom& a) {
    if (a.is_var()) return of(a.var);
    std::byte element[8] = {};
    store_literal(a.literal, element);
    return bytes(a.literal.dtype, {}, element, itemsize(a.literal.dtype));
  }
  Numbers operands(const Equation& e) {
    Numbers in;
    for (const Atom& a : e.in) in.push_back(number(a));
    return in;
  }

  // The numbers of results that are operands, or parts of an operand, under another name.
  std::optional<Numbers> moved_only(const Equation& e, const Numbers& in) const {
    const Primitive* prim = e.prim;
    if (prim == &name_p || prim == &copy_p || prim == &stop_gradient_p || prim == &device_put_p)
      return in;
    if (prim == &reduce_precision_p && keeps_all_bits(e.params, p_.type(e.in[0]).dtype)) return in;
    if (prim == &convert_element_type_p && p_.type(e.in[0]).dtype == p_.type(e.out[0]).dtype)
      return in;
    if (prim == &unstack_p) {
      const auto it = stacks_.find(in[0]);
      if (it == stacks_.end() || it->second->equation->params != e.params) return std::nullopt;
      return it->second->in;
    }
    return std::nullopt;
  }

  const Numbers& computed(const Equation& e, const Numbers& in) {
    const std::size_t h = equation_hash(e, in);
    const auto [first, last] = made_.equal_range(h);
    for (auto it = first; it != last; ++it) {
      const Equation& earlier = *it->second.equation;
      const bool same = earlier.prim == e.prim && it->second.in == in &&
                        earlier.out.size() == e.out.size() && earlier.params == e.params;
      if (same) return it->second.out;
    }
    Made made{&e, in, {}};
    for (std::size_t k = 0; k < e.out.size(); ++k) made.out.push_back(fresh());
    const Made& kept = made_.emplace(h, std::move(made))->second;
    if (e.prim == &stack_p) stacks_[kept.out[0]] = &kept;
    return kept.out;
  }

  const Program& p_;
  ValueNumbers result_;
  std::map<std::tuple<Dtype, Shape, std::string>, Number> constants_;
  std::unordered_multimap<std::size_t, Made> made_;
  std::unordered_map<Number, const Made*> stacks_;  // by the number of the stacked array
};

}  // namespace

ValueNumbers value_numbers(const Program& p, const Arrays& consts) {
  return Numbering(p, consts).run();
}

}  // namespace reprise
