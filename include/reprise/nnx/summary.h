// Overviews of models.
//
//   std::cout << nnx::tabulate(model, x);     // path, type, inputs, outputs, variables by kind
//   nnx::display(model);                      // as operator<<
#pragma once

#include "reprise/nnx/call.h"

#include <string>
#include <utility>

#pragma GCC visibility push(default)
namespace reprise::nnx {

namespace detail {
std::string tabulate(Module& root, Target& call);
void print(const std::string& text);
}  // namespace detail

// What model(args...) does, layer by layer; nothing is computed and the model stays as it is. A row
// for the model, for each layer of this library that is called, and for each module with variables
// of its own.
template <class M, class... A>
std::string tabulate(M& model, const A&... args) {
  static_assert(detail::is_node<M>(), "nnx::tabulate needs an nnx::Module");
  auto call = [](M& m, reprise::detail::HeldGeneric<A>... in) { return m(std::move(in)...); };
  using Args = std::tuple<detail::Reference<M>, reprise::detail::HeldGeneric<A>...>;
  auto target = detail::target_of(
      call, Args{detail::Reference<M>{&model}, reprise::detail::HeldGeneric<A>(args)...},
      Location{});
  return detail::tabulate(model, target);
}

// Prints modules, variables and states, one after the other.
template <class... T>
void display(const T&... objects) {
  (detail::print(to_string(objects)), ...);
}

}  // namespace reprise::nnx
#pragma GCC visibility pop
