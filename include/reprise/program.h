// Programs as values: make_jaxpr shows what a function does, as JAX prints it.
//
//   std::cout << rp::make_jaxpr(f)(x);      // { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
#pragma once

#include "reprise/callable.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

struct Program;

// A traced function: its program and the arrays it closed over.
class Jaxpr {
 public:
  Jaxpr(std::shared_ptr<const Program> program, Arrays consts)
      : program_(std::move(program)), consts_(std::move(consts)) {}
  std::string str(int width = 80) const;
  std::vector<Type> in_types() const;  // of the arguments, without the constants
  std::vector<Type> out_types() const;
  std::size_t size() const;  // number of equations
  const Arrays& consts() const { return consts_; }
  Arrays eval(const Arrays& args, Location at = Location::current()) const;
  const std::shared_ptr<const Program>& program() const { return program_; }

 private:
  std::shared_ptr<const Program> program_;
  Arrays consts_;
};
std::ostream& operator<<(std::ostream&, const Jaxpr&);

// Reads the text form back. Constants (before the `;`) become leading arguments.
Jaxpr parse_jaxpr(std::string_view text);

namespace detail {
// A number of its own for each function that is being traced: the innermost one on this thread, 0
// when there is none.
std::uint64_t current_trace();
// Handles of one value: the same elements, or the same variable.
bool is_same_value(const Array& a, const Array& b);
Jaxpr trace_to_jaxpr(const Callee& f, const Arrays& args);
Arrays trace_to_shapes(const Callee& f, const Arrays& args);

template <class F>
struct MakeJaxpr : CallOperator<MakeJaxpr<F>, F> {
  F f;
  explicit MakeJaxpr(F fn) : f(std::move(fn)) {}
  template <class... A>
  Jaxpr call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at);
    return trace_to_jaxpr(applied.callee(), applied.leaves());
  }
  using CallOperator<MakeJaxpr<F>, F>::operator();
  template <class... A>
  requires AnyLifted<A...> Jaxpr operator()(const A&... args) const {
    const auto applied = inspect(f, Location{}, args...);
    return trace_to_jaxpr(applied.callee(), applied.leaves());
  }
};
}  // namespace detail

// The program of f for arguments of the given types.
template <class F>
detail::MakeJaxpr<F> make_jaxpr(F f) {
  return detail::MakeJaxpr<F>(std::move(f));
}

// The program for the wanted outputs only, without arguments that these do not need; `used_args`
// tells which of the arguments are left.
struct LiveJaxpr {
  Jaxpr jaxpr;
  std::vector<bool> used_args;
};
LiveJaxpr dce_jaxpr(const Jaxpr& jaxpr, const std::vector<bool>& wanted_outputs);

// The tree with a type in the place of each array: lower, eval_shape, saved_residuals,
// residual_report, memory_curve and make_jaxpr take it like the tree itself, and its numbers need
// no memory.
template <class T>
T types_of(const T& tree) {
  return tree_map([](const Array& x) { return detail::abstract_array(x.type()); }, tree);
}

// The result's structure with types only: nothing is computed.
template <class F, class... A>
auto eval_shape(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  const Arrays shapes = detail::trace_to_shapes(applied.callee(), applied.leaves());
  return applied.result(shapes);
}

}  // namespace reprise
#pragma GCC visibility pop
