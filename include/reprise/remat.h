// Looking at what differentiation keeps and recomputes.
//
//   rp::FwdBwd p = rp::fwd_bwd(f, W, x);
//   std::cout << p.forward << p.backward;
#pragma once

#include "reprise/autodiff.h"

namespace reprise {

// The two programs of a differentiated function. `forward` returns the outputs and then the residuals;
// `backward` takes the residuals and then the cotangents.
struct FwdBwd {
  Jaxpr forward, backward;
};

// Names the arrays of a tree, so that policies and residual tables can speak of them.
Array checkpoint_name(Operand x, const std::string& name);
template <class T>
  requires(!std::is_convertible_v<T, Operand>)
T checkpoint_name(const T& tree, const std::string& name) {
  return tree_map([&](const Array& x) { return checkpoint_name(x, name); }, tree);
}

namespace detail {
FwdBwd fwd_bwd(const Callee& f, const Arrays& args);
}

template <class F, class... A>
FwdBwd fwd_bwd(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  return detail::fwd_bwd(applied.callee(), applied.leaves());
}

}  // namespace reprise
