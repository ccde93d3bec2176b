#include "transform/forward.h"

#include <unordered_map>

namespace reprise {

Atom OutputSource::of(const std::vector<Atom>& in, const std::vector<Var>& out) const {
  if (kind == Kind::literal) return Atom::of(literal);
  return kind == Kind::input ? in[index] : Atom::of(out[index]);
}

Forwarded forward_outputs(Program p, const Forwarding& which) {
  using Kind = OutputSource::Kind;
  std::unordered_map<Var, std::size_t> input_at, output_at;
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (which.inputs.empty() || which.inputs[i]) input_at[p.in[i]] = i;
  }
  std::vector<Atom> kept;
  // JAX asks the other outputs before the inputs; it shows in the operands of calls.
  const auto source_of = [&](std::size_t k) -> OutputSource {
    const Atom& a = p.out[k];
    if (!a.is_var() && which.literals) return {Kind::literal, 0, a.literal};
    if (!a.is_var()) return {Kind::output, kept.size()};
    if (const auto o = output_at.find(a.var); k >= which.first_repeated && o != output_at.end())
      return {Kind::repeated, o->second};
    if (const auto i = input_at.find(a.var); k >= which.first_input && i != input_at.end())
      return {Kind::input, i->second};
    return {Kind::output, kept.size()};
  };
  Forwarded result;
  for (std::size_t k = 0; k < p.out.size(); ++k) {
    result.from.push_back(source_of(k));
    if (!result.from.back().is_returned()) continue;
    if (p.out[k].is_var()) output_at[p.out[k].var] = kept.size();
    kept.push_back(p.out[k]);
  }
  p.out = std::move(kept);
  result.program = std::make_shared<const Program>(std::move(p));
  return result;
}

}  // namespace reprise
