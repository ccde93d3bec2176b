// Modules as arguments of the core's functions that look at a function without running it:
// make_jaxpr, saved_residuals, print_saved_residuals, residual_report, fwd_bwd, check_recompute,
// jit(f).lower. Library plumbing.
//
//   rp::print_saved_residuals(loss, RP_ARGS(model, x));   // f32[4,4] from the argument model.layers[0].kernel
//
// They work on a copy with variables of its own: whatever the function does, the given modules stay
// as they are.
#pragma once

#include "reprise/nnx/transforms.h"

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx::detail {

// Calls of a function as a function of arrays. Each run gets a target of its own, so that what one
// run does to the structure of its modules is no matter for the next.
class InspectCall {
 public:
  using MakeTarget = std::function<std::shared_ptr<Target>()>;
  // of the arguments; may be empty
  InspectCall(const MakeTarget& make, const std::vector<std::string>& names);
  ~InspectCall();
  const reprise::detail::Callee& callee() const;
  Arrays leaves() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What stands for a held argument: of a reference a copy of what it refers to.
template <class H>
struct CopyOf {
  using type = H;
};
template <class T>
struct CopyOf<Reference<T>> {
  using type = std::remove_const_t<T>;
};

template <class F, class... H>
class Inspected {
 public:
  template <class... A>
  Inspected(const F& f, Location at, const std::vector<std::string>& names, const A&... args)
      : given_(typename CopyOf<H>::type(args)...),
        f_(f),
        at_(at),
        call_([this] { return new_target(); }, names) {}
  Inspected(const Inspected&) = delete;
  Inspected& operator=(const Inspected&) = delete;

  const reprise::detail::Callee& callee() const { return call_.callee(); }
  Arrays leaves() const { return call_.leaves(); }
  // With copies of the arguments that have variables of their own.
  std::shared_ptr<Target> new_target() const {
    const auto owned = std::make_shared<Owned>(*this);
    return {owned, &owned->target};
  }

 private:
  using Copies = std::tuple<typename CopyOf<H>::type...>;
  struct Owned {
    explicit Owned(const Inspected& from)
        : copies(from.given_),
          target(from.f_, held(std::index_sequence_for<H...>{}), from.at_,
                 function_identity(from.f_)) {}
    template <std::size_t... I>
    std::tuple<H...> held(std::index_sequence<I...>) {
      Fields fields;
      (fields.add(I, std::get<I>(copies)), ...);
      detach_fields(fields, /*keep_values=*/true);
      return {hold<H>(std::get<I>(copies))...};
    }
    Copies copies;
    TypedTarget<F, H...> target;
  };
  Copies given_;
  F f_;
  Location at_;
  InspectCall call_;
};

template <class F, class Signature>
struct InspectedOf;
template <class F, class R, class... P>
struct InspectedOf<F, R(P...)> {
  template <class... A>
  struct With {
    static_assert(sizeof...(A) == sizeof...(P), "wrong number of arguments for this function");
    using type = Inspected<F, Held<P>...>;
  };
};
template <class F>
struct InspectedOf<F, void> {
  template <class... A>
  struct With {
    using type = Inspected<F, HeldGeneric<A&, false>...>;
  };
};

struct Inspection {
  template <class F, class... A>
  using For = typename InspectedOf<F, typename SignatureOf<F>::type>::template With<
      reprise::detail::Unnamed<A>...>::type;
  template <class F, class... A>
  static For<std::decay_t<F>, A...> inspect(const F& f, Location at, const A&... args) {
    using reprise::detail::name_of, reprise::detail::unnamed;
    return {f, at, {name_of(args)...}, unnamed(args)...};
  }
  template <class F, class... A>
  static Lowered lower(const F& f, const JitOptions& options, const A&... args) {
    const auto inspected = inspect(f, Location{}, args...);
    const auto target = inspected.new_target();
    return Lowered(JitCall(*target, options).trace());
  }
};

}  // namespace reprise::nnx::detail
#pragma GCC visibility pop
