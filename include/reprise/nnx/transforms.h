// Transforms of functions that take modules: remat, jit, grad. Modules and variables are passed by
// reference; what the function changes in them, and new variables, are there afterwards.
//
//   auto forward = nnx::remat([](MLP& model, Array x) { return model(x); });
//   auto step = nnx::jit([](MLP& model, nnx::Optimizer& optimizer, Array x) {
//     auto [loss, grads] = nnx::value_and_grad(loss_of)(model, x);
//     optimizer.update(model, grads);
//     return loss;
//   });
//
// A method is a function whose first parameter is the module: nnx::remat(&Block::call)(block, x).
// Inside a transform only variables that were passed as arguments may be changed.
#pragma once

#include "reprise/autodiff.h"
#include "reprise/jit.h"
#include "reprise/nnx/call.h"
#include "reprise/remat.h"

#include <concepts>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// As in the core.
using RematOptions = CheckpointOptions;
using reprise::has_aux;
using reprise::static_argnums;

namespace detail {

void run_remat(Target& target, const RematOptions& options);

template <class F>
constexpr void check_function() {
  static_assert(
      !is_bound_method<F>,
      "nnx transforms do not take bound methods: pass the method itself, "
      "nnx::remat(&Block::forward)(block, x), or a function whose first parameter is the module");
}

template <class F>
struct Remat : CallOperator<Remat<F>, F> {
  F f;
  RematOptions options;
  std::string identity;  // of this wrapper and its copies, when the function has none of its own
  Remat(F fn, RematOptions o)
      : f(std::move(fn)), options(std::move(o)), identity(function_identity(f)) {
    check_function<F>();
    if (identity.empty()) identity = reprise::detail::new_identity();
  }
  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    auto target = target_of(f, std::move(args), at, identity);
    run_remat(target, options);
    return target.take();
  }
};

// -------------------------------------------------------------------------------------------- grad
// The gradient of a call: one array for each chosen leaf of the arguments.
class GradCall {
 public:
  struct Choice {
    std::size_t argument;
    Filter filter;
  };
  GradCall(Target& target, const std::vector<Choice>& wrt);
  ~GradCall();
  State state(std::size_t argument) const;    // by path
  Arrays leaves(std::size_t argument) const;  // in order
  // Puts gradients into a copy of a value argument.
  void replace(std::size_t argument, Fields& copy) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class H>
auto gradient_of(const GradCall& call, std::size_t argument, const H& held) {
  if constexpr (is_reference<H>) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(held.target)>>;
    if constexpr (is_variable<T>()) {
      return call.leaves(argument).at(0);
    } else {
      return call.state(argument);
    }
  } else if constexpr (is_module<H>()) {
    return call.state(argument);
  } else {
    H copy = held;
    Fields fields;
    fields.add(0, copy);
    call.replace(argument, fields);
    return copy;
  }
}

}  // namespace detail

// Which leaves of an argument are differentiated, instead of its parameters.
struct DiffState {
  std::size_t argnum;
  Filter filter;
};
struct GradOptions {
  Filter wrt = OfType<Param>;  // of modules; plain arrays are differentiated as they are
  std::vector<DiffState> diff_states = {};  // for single arguments
};

namespace detail {
std::vector<GradCall::Choice> choices(const std::vector<std::size_t>& argnums,
                                      const GradOptions& options);

template <bool with_value, bool aux, class F, std::size_t... I>
struct Grad : CallOperator<Grad<with_value, aux, F, I...>, F> {
  F f;
  GradOptions options;
  Grad(F fn, GradOptions o) : f(std::move(fn)), options(std::move(o)) { check_function<F>(); }

  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    static_assert(((I < sizeof...(H)) && ...), "grad: no such argument");
    auto target = target_of(f, args, at);
    using Result = typename decltype(target)::Result;
    static_assert(aux || std::is_same_v<Result, Array>,
                  "nnx::grad: the function must return one Array; pass nnx::has_aux if it returns "
                  "std::pair(loss, aux)");
    const GradCall g(target, choices({I...}, options));
    auto grads = [&] {
      if constexpr (sizeof...(I) == 1) {
        return (gradient_of(g, I, std::get<I>(args)), ...);
      } else {
        return std::tuple{gradient_of(g, I, std::get<I>(args))...};
      }
    }();
    if constexpr (with_value) {
      return std::pair{target.take(), std::move(grads)};
    } else if constexpr (aux) {
      return std::pair{std::move(grads), std::move(target.value().second)};
    } else {
      return grads;
    }
  }
};

// --------------------------------------------------------------------------------------------- jit
struct JitRecord;  // a traced program and where its results go
class JitCall {
 public:
  JitCall(Target& target, const JitOptions& options);
  ~JitCall();
  const std::string& key() const;
  std::shared_ptr<const JitRecord> trace();  // runs the function
  void keep(reprise::detail::JitCache& cache, reprise::detail::JitCache::Made made) const;
  void run(const JitRecord& record, bool just_traced);  // and writes its results
 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
bool reusable(const JitRecord&);
const std::shared_ptr<const reprise::detail::JitEntry>& entry_of(const JitRecord&);
}  // namespace detail

// What nnx::jit made of a call, before and after compilation.
class Compiled {
 public:
  explicit Compiled(std::shared_ptr<const detail::JitRecord> record) : record_(std::move(record)) {}
  MemoryAnalysis memory_analysis() const {
    return reprise::detail::memory_of(*detail::entry_of(*record_));
  }
  CostAnalysis cost_analysis() const {
    return reprise::detail::cost_of(*detail::entry_of(*record_));
  }
  std::string as_text() const { return reprise::detail::plan_text(*detail::entry_of(*record_)); }
  const std::shared_ptr<const reprise::detail::JitEntry>& entry() const {  // what report.h looks at
    return detail::entry_of(*record_);
  }

 private:
  std::shared_ptr<const detail::JitRecord> record_;
};
class Lowered {
 public:
  explicit Lowered(std::shared_ptr<const detail::JitRecord> record) : record_(std::move(record)) {}
  Compiled compile() const {
    reprise::detail::compile_jit(*detail::entry_of(*record_));
    return Compiled(record_);
  }
  std::string as_text() const { return reprise::detail::program_text(*detail::entry_of(*record_)); }

 private:
  std::shared_ptr<const detail::JitRecord> record_;
};

namespace detail {

template <class F>
struct Jit : CallOperator<Jit<F>, F> {
  F f;
  JitOptions options;
  Jit(F fn, JitOptions o) : f(std::move(fn)), options(std::move(o)) {
    check_function<F>();
    if (options.name.empty()) options.name = "<lambda>";
  }

  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    auto target = target_of(f, std::move(args), at);
    using Result = typename decltype(target)::Result;
    JitCall jitted(target, options);
    if (const auto known = find<Result>(jitted.key())) {
      target.set_result(fresh(known->structure));
      jitted.run(*known->record, /*just_traced=*/false);
    } else {
      const auto record = jitted.trace();
      if (reusable(*record)) keep(jitted, Known<Result>{record, fresh(target.value())});
      jitted.run(*record, /*just_traced=*/true);
    }
    return target.take();
  }

  // Traces for these arguments without running.
  template <class... A>
  Lowered lower(A&&... args) const {
    auto target = target_of(f, this->pack(std::forward<A>(args)...), Location{});
    using Result = typename decltype(target)::Result;
    JitCall jitted(target, options);
    if (const auto known = find<Result>(jitted.key())) return Lowered(known->record);
    const auto record = jitted.trace();
    if (reusable(*record)) keep(jitted, Known<Result>{record, fresh(target.value())});
    return Lowered(record);
  }

 private:
  template <class Result>
  struct Known {
    std::shared_ptr<const JitRecord> record;
    Result structure;  // without values
  };
  // A copy with variables of its own and without arrays.
  template <class Result>
  static Result fresh(const Result& result) {
    Result copy = result;
    if constexpr (!std::is_same_v<Result, NoResult>) {
      Fields fields;
      fields.add(0, copy);
      detach_fields(fields, /*keep_values=*/false);
    }
    return copy;
  }
  template <class Result>
  std::shared_ptr<const Known<Result>> find(const std::string& key) const {
    return cache->template find<Known<Result>>(key);
  }
  template <class Result>
  void keep(const JitCall& jitted, Known<Result> known) const {
    const auto made = std::make_shared<const Known<Result>>(std::move(known));
    jitted.keep(*cache, reprise::detail::JitCache::Made(made));
  }
  std::shared_ptr<reprise::detail::JitCache> cache = std::make_shared<reprise::detail::JitCache>();
};

}  // namespace detail

// f, whose intermediate values are recomputed in the backward pass as the policy says. State that f
// changes is changed once: batch statistics and the counts of random streams are those of one call.
template <class F>
detail::Remat<F> remat(F f, RematOptions options = {}) {
  return {std::move(f), std::move(options)};
}

template <class F, std::convertible_to<Policy> P>
REPRISE_UNAVAILABLE("the policy is an option with a name: write nnx::remat(f, {.policy = policy})")
void remat(F f, const P& policy);

// The gradient with respect to the arguments I... (the first by default): of a module a State with
// its parameters (or what `wrt` says), of a Variable an Array, of other values the same structure.
template <std::size_t... I, class F>
auto grad(F f, GradOptions options = {}) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<false, false, F, 0>(std::move(f), std::move(options));
  } else {
    return detail::Grad<false, false, F, I...>(std::move(f), std::move(options));
  }
}
template <std::size_t... I, class F>
auto grad(F f, HasAux, GradOptions options = {}) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<false, true, F, 0>(std::move(f), std::move(options));
  } else {
    return detail::Grad<false, true, F, I...>(std::move(f), std::move(options));
  }
}
template <std::size_t... I, class F>
auto value_and_grad(F f, GradOptions options = {}) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<true, false, F, 0>(std::move(f), std::move(options));
  } else {
    return detail::Grad<true, false, F, I...>(std::move(f), std::move(options));
  }
}
template <std::size_t... I, class F>
auto value_and_grad(F f, HasAux, GradOptions options = {}) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<true, true, F, 0>(std::move(f), std::move(options));
  } else {
    return detail::Grad<true, true, F, I...>(std::move(f), std::move(options));
  }
}

// f, compiled once per structure, static values and types of its arguments. Calls that change
// static values or the structure of a module are traced again each time. Of a module in
// donate_argnums the memory of the variables that f changes is used for their new values (which are
// missing if the run fails):
//   auto step = nnx::jit(train_step, {.donate_argnums = {0, 1}});   // the model and the optimizer
template <class F>
detail::Jit<F> jit(F f, JitOptions options = {}) {
  return {std::move(f), std::move(options)};
}

}  // namespace reprise::nnx
#pragma GCC visibility pop
