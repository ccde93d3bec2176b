// jit: a function that is traced once per argument types and runs as one program.
//
//   auto step = rp::jit(rp::value_and_grad(loss), {.name = "step"});
//   auto [value, grads] = step(params, x);
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "reprise/callable.h"

namespace reprise {

struct JitOptions {
  std::string name = {};  // in printed programs; "<lambda>" by default
};

namespace detail {

struct JitEntry;  // one traced program
struct JitCall {
  std::shared_ptr<const JitEntry> entry;  // null: nothing traced for these types yet
  Arrays out;
};
// Traces the function (or takes `known`) and evaluates or stages one jit equation.
JitCall call_jit(const Callee& f, const Arrays& args, std::shared_ptr<const JitEntry> known);
std::string types_key(const Arrays& args);
bool shareable(const JitEntry&);  // closes over no traced value

template <class F>
struct Jit : CallOperator<Jit<F>, F> {
  F f;
  JitOptions options;
  Jit(F fn, JitOptions o) : f(std::move(fn)), options(std::move(o)) {
    if (options.name.empty()) options.name = "<lambda>";
  }

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    using Run = Applied<F, A...>;
    struct Known {
      std::shared_ptr<const JitEntry> entry;
      std::optional<typename Run::Result> structure;
    };
    const auto applied = apply_to(f, std::move(args), at, options.name);
    const Arrays leaves = applied.leaves();
    const std::string key = applied.key() + types_key(leaves);
    const Known* known = nullptr;
    {
      const std::lock_guard lock(cache->mutex);
      const auto it = cache->entries.find(key);
      if (it != cache->entries.end()) known = static_cast<const Known*>(it->second.get());
    }
    if (known != nullptr) {
      return tree_unflatten(*known->structure, call_jit(applied.callee(), leaves, known->entry).out);
    }
    JitCall made = call_jit(applied.callee(), leaves, nullptr);
    auto result = applied.result(made.out);
    if (shareable(*made.entry)) {
      const std::lock_guard lock(cache->mutex);
      cache->entries.emplace(key, std::make_shared<Known>(Known{made.entry, result}));
    }
    return result;
  }

 private:
  struct Cache {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const void>> entries;
  };
  std::shared_ptr<Cache> cache = std::make_shared<Cache>();
};

}  // namespace detail

template <class F>
detail::Jit<F> jit(F f, JitOptions options = {}) {
  return {std::move(f), std::move(options)};
}

}  // namespace reprise
