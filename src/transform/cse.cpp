#include "transform/cse.h"

#include "program/effects.h"
#include "program/equation_hash.h"
#include "transform/rewrite.h"

#include <unordered_map>

namespace reprise {
namespace {

std::size_t hash_by_operands(const Equation& e) {
  std::vector<std::size_t> operands;
  for (const Atom& a : e.in) {
    operands.push_back(a.is_var() ? static_cast<std::size_t>(a.var)
                                  : static_cast<std::size_t>(a.literal.natural));
  }
  return equation_hash(e, operands);
}
bool same(const Equation& a, const Equation& b) {
  return a.prim == b.prim && a.in == b.in && a.params == b.params && a.out.size() == b.out.size();
}

}  // namespace

Program cse(const Program& p) {
  Rewriter rewrite(p);
  std::unordered_multimap<std::size_t, Equation> seen;
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, "cse", cse);
    if (effect_of(now).is_distinct) {
      rewrite.append(std::move(now));
      continue;
    }
    const std::size_t h = hash_by_operands(now);
    const auto [first, last] = seen.equal_range(h);
    const Equation* earlier = nullptr;
    for (auto it = first; it != last; ++it) {
      if (same(it->second, now)) earlier = &it->second;
    }
    if (earlier != nullptr) {
      for (std::size_t k = 0; k < e.out.size(); ++k)
        rewrite.replace(e.out[k], Atom::of(earlier->out[k]));
      continue;
    }
    seen.emplace(h, now);
    rewrite.append(std::move(now));
  }
  return rewrite.finish();
}

}  // namespace reprise
