// The loop over the equations of a program, with a meaning of your choice.
//
//   walk(p, args, [](const Equation& e, const Arrays& x) { return e.prim->bind(x, e.params); })   is eval
#pragma once

#include "program/trace.h"

#include <algorithm>
#include <utility>

namespace reprise {

// `apply` gives the results of an equation on its operands. Values are dropped after their last
// reader.
template <class F>
Arrays walk(const Program& p, Arrays args, const F& apply) {
  REPRISE_INVARIANT(args.size() == p.in.size());
  Arrays env(p.types.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    env[static_cast<std::size_t>(p.in[i])] = std::move(args[i]);
  }
  args.clear();
  const auto& dead = last_reads(p);
  auto read = [&](const Atom& a) {
    return a.is_var() ? env[static_cast<std::size_t>(a.var)] : make_number(a.literal);
  };
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    const Equation& e = p.eqns[i];
    const AtEquation at(e.at, e.phase);
    Arrays x;
    x.reserve(e.in.size());
    for (const Atom& a : e.in) x.push_back(read(a));
    Arrays y = apply(e, std::as_const(x));
    x.clear();
    for (Var v : dead[i]) env[static_cast<std::size_t>(v)] = Array();
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (std::find(dead[i].begin(), dead[i].end(), e.out[k]) == dead[i].end()) {
        env[static_cast<std::size_t>(e.out[k])] = std::move(y[k]);
      }
    }
  }
  Arrays out;
  out.reserve(p.out.size());
  for (const Atom& a : p.out) out.push_back(read(a));
  return out;
}

}  // namespace reprise
