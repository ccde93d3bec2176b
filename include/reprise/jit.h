// jit: a function that is traced and compiled once per argument types and runs as one program whose
// memory is planned beforehand.
//
//   auto step = rp::jit(rp::value_and_grad(loss), {.name = "step"});
//   auto [value, grads] = step(params, x);
//   std::cout << step.lower(params, x).compile().memory_analysis();
#pragma once

#include "reprise/budget.h"
#include "reprise/callable.h"

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#pragma GCC visibility push(default)
namespace reprise {

// How a function is compiled and called.
struct JitOptions {
  std::string name = {};  // in printed programs; "<lambda>" by default
  // Offloaded values go to a file in this directory that is gone after the call; empty: to the one
  // that REPRISE_SPILL_DIR names, else they stay in memory. Of nested calls the outermost decides.
  std::string spill_directory = {};
  // Arguments (negative: from the end) whose memory results of the same size may take over:
  // params = step(std::move(params), x) needs no second copy of params. An array that someone else
  // still holds, because it was not moved or has other handles, is copied first: no live array ever
  // changes.
  std::vector<int> donate_argnums = {};
  // memory_analysis().peak_bytes is at most that, a RuntimeError where no plan is found: the
  // compiler decides what is kept and what is computed again, the cheapest way it finds.
  // {.memory_budget = 512_MiB}
  std::optional<std::int64_t> memory_budget = {};
  // What checkpoints save and play again is fixed for a budget, unless this says that it is only a
  // hint.
  bool budget_may_override_policies = false;
};

// Bytes of one run, known when compile() returns. Peak is what a run holds at most beyond its
// arguments: outputs, temporaries, scratch memory of libraries, offloaded values that stay in
// memory.
struct MemoryAnalysis {
  std::size_t argument_bytes = 0;
  std::size_t output_bytes = 0;  // without those that are or take over arguments
  std::size_t temp_bytes = 0;    // peak_bytes - output_bytes
  std::size_t peak_bytes = 0;
  // outputs that take over donated arguments: no part of peak_bytes
  std::size_t alias_bytes = 0;
  // donated arguments that calls so far had to copy, beyond the peak
  std::size_t copied_donations = 0;
  std::size_t host_temp_bytes = 0;  // offloaded values, in memory or on disk
  bool host_on_disk = false;        // then they are no part of peak_bytes
};
std::ostream& operator<<(std::ostream&, const MemoryAnalysis&);

// What one run computes, recomputation included.
struct CostAnalysis {
  double flops = 0;
  double matmul_flops = 0;    // matrix products and convolutions alone
  double bytes_accessed = 0;  // operands and results of all operations, as if nothing were fused
  // What a rank gets from the others in collectives. A sum over n ranks counts as a part of it
  // gathered from each, twice: 2 (n - 1) / n of its bytes.
  double bytes_communicated = 0;
};
std::ostream& operator<<(std::ostream&, const CostAnalysis&);

namespace detail {

struct JitEntry;  // one traced program
// argument_of: the number of the argument that each leaf belongs to, of so many arguments; read
// when f has run.
std::shared_ptr<const JitEntry> trace_jit(const Callee& f, const Arrays& args,
                                          const JitOptions& options,
                                          const std::vector<std::size_t>& argument_of,
                                          std::size_t arguments);
// Runs the compiled program, or stages one jit equation where a program is being traced.
Arrays call_jit(Location at, const std::string& name, Arrays args, const JitEntry& known);
void append_types(std::string& key, const Arrays& args);  // equal bytes: equal types
bool shareable(const JitEntry&);                          // closes over no traced value

// What a jit function has traced, by C++ types, structure, static values and types of the
// arguments. What was kept is given back as the type it has or not at all.
class JitCache {
 public:
  struct Made {
    template <class T>
    explicit Made(std::shared_ptr<const T> v) : type(&tree::type_mark<T>), value(std::move(v)) {}
    const char* type;
    std::shared_ptr<const void> value;
  };
  template <class T>
  std::shared_ptr<const T> find(const std::string& key) const {  // null: it is new
    return std::static_pointer_cast<const T>(find_as(key, &tree::type_mark<T>));
  }
  // Of the programs that are kept the one used longest ago makes room for the 1025th. Warns once
  // when ever more static values come with arguments of the same types, given as the traced `args`,
  // and once when there are ever more types.
  void add(const std::string& key, const Arrays& args, const std::string& name, Made made);
  // of the jit function, if its function has none
  const std::string& identity() const { return identity_; }

 private:
  std::shared_ptr<const void> find_as(const std::string& key, const char* type) const;
  void drop_oldest();
  struct Use {
    std::string types;
    std::uint64_t last;
  };
  const std::string identity_ = new_identity();
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Made> made_;
  std::unordered_map<std::string, std::size_t> programs_of_types_;
  mutable std::unordered_map<std::string, Use> uses_;  // of each that is made
  mutable std::uint64_t calls_ = 0;
  bool has_warned_of_values_ = false, has_warned_of_types_ = false;
};

void compile_jit(const JitEntry&);
MemoryAnalysis memory_of(const JitEntry&);
CostAnalysis cost_of(const JitEntry&);
BudgetAnalysis budget_of(const JitEntry&);
std::vector<CurveData> curve_of(const JitEntry&);
bool fits(const JitEntry&, std::int64_t budget);
std::string program_text(const JitEntry&);  // as traced
std::string plan_text(const JitEntry&);     // as it runs
[[noreturn]] void other_types(const JitEntry& expected, const Arrays& got);

template <class F>
struct Jit;

}  // namespace detail

// A compiled function for arguments of certain types.
template <class F>
class Compiled {
 public:
  Compiled(detail::Jit<F> f, std::shared_ptr<const detail::JitEntry> entry, std::string key)
      : f_(std::move(f)), entry_(std::move(entry)), key_(std::move(key)) {}

  // Arguments of other types than it was lowered for are a TypeError.
  template <class... A>
  auto operator()(A&&... args) const {
    check_types(args...);
    return f_(std::forward<A>(args)...);
  }
  MemoryAnalysis memory_analysis() const { return detail::memory_of(*entry_); }
  CostAnalysis cost_analysis() const { return detail::cost_of(*entry_); }
  BudgetAnalysis budget_analysis() const { return detail::budget_of(*entry_); }
  std::string as_text() const { return detail::plan_text(*entry_); }  // the planned program
  // what report.h looks at
  std::shared_ptr<const detail::JitEntry> entry() const { return entry_; }

 private:
  template <class... A>
  void check_types(const A&... args) const {
    const auto applied = detail::inspect(f_.f, Location{}, args...);
    const Arrays leaves = applied.leaves();
    if (f_.key_of(applied.args(), leaves) != key_) detail::other_types(*entry_, leaves);
  }

  detail::Jit<F> f_;
  std::shared_ptr<const detail::JitEntry> entry_;
  std::string key_;
};

// A traced function, ready to be compiled.
template <class F>
class Lowered {
 public:
  Lowered(detail::Jit<F> f, std::shared_ptr<const detail::JitEntry> entry, std::string key)
      : f_(std::move(f)), entry_(std::move(entry)), key_(std::move(key)) {}
  Compiled<F> compile() const {
    detail::compile_jit(*entry_);
    return {f_, entry_, key_};
  }
  std::string as_text() const { return detail::program_text(*entry_); }
  // what memory_curve.h looks at
  std::shared_ptr<const detail::JitEntry> entry() const { return entry_; }

 private:
  detail::Jit<F> f_;
  std::shared_ptr<const detail::JitEntry> entry_;
  std::string key_;
};

namespace detail {

template <class F>
struct Jit : CallOperator<Jit<F>, F> {
  F f;
  JitOptions options;
  Jit(F fn, JitOptions o) : f(std::move(fn)), options(std::move(o)) {
    if (options.name.empty()) options.name = "<lambda>";
  }

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    Arrays leaves = tree_leaves(args);
    const auto known = known_for(at, std::move(args), leaves);
    const Arrays out = call_jit(at, options.name, std::move(leaves), *known->entry);
    auto result = known->structure;
    std::size_t next = 0;
    tree::replace_leaves(result, out, next);
    return result;
  }

  // Traces for these arguments without running.
  template <class... A>
  auto lower(const A&... args) const {
    if constexpr (AnyLifted<A...>) {
      return InspectionOf<Unnamed<A>...>::type::lower(f, options, args...);
    } else {
      return lowered(args...);
    }
  }
  // Equal for calls that run the same program: C++ types, structure, static values and types of the
  // arguments.
  template <class Args>
  static std::string key_of(const Args& args, const Arrays& leaves) {
    std::string key;
    key.reserve(128);
    tree::append_type<Args>(key);
    tree::describe(args, key);
    append_types(key, leaves);
    return key;
  }

 private:
  template <class... A>
  Lowered<F> lowered(const A&... args) const {
    const auto applied = inspect(f, Location{}, args...);
    const Arrays leaves = applied.leaves();
    const std::string key = key_of(applied.args(), leaves);
    auto known = find<typename decltype(inspect(f, Location{}, args...))::Result>(key);
    if (!known) known = trace(applied, leaves, key);
    return {*this, known->entry, key};
  }
  // Arguments are given up: leaves are the only handles of donated arrays, and the key takes no
  // memory while the program runs.
  template <class... A>
  auto known_for(Location at, std::tuple<A...> args, const Arrays& leaves) const {
    const std::string key = key_of(args, leaves);
    if (auto known = find<typename Applied<F, A...>::Result>(key)) return known;
    return trace(apply_to(f, std::move(args), at, options.name), leaves, key);
  }

  template <class Result>
  struct Known {
    std::shared_ptr<const JitEntry> entry;
    Result structure;  // its leaves are of no interest
  };
  template <class Result>
  std::shared_ptr<const Known<Result>> find(const std::string& key) const {
    return cache->template find<Known<Result>>(key);
  }
  template <class Run>
  auto trace(const Run& applied, const Arrays& leaves, const std::string& key) const {
    using K = Known<typename Run::Result>;
    Callee callee = applied.callee();
    callee.name = options.name;
    if (callee.identity.empty()) callee.identity = cache->identity();
    std::vector<std::size_t> argument_of;
    std::apply(
        [&](const auto&... a) {
          std::size_t i = 0;
          (argument_of.insert(argument_of.end(), tree_leaves(a).size(), i++), ...);
        },
        applied.args());
    auto entry =
        trace_jit(callee, leaves, options, argument_of, std::tuple_size_v<typename Run::Args>);
    const auto made = std::make_shared<const K>(K{entry, applied.traced_result()});
    if (shareable(*entry)) cache->add(key, leaves, options.name, JitCache::Made(made));
    return made;
  }
  std::shared_ptr<JitCache> cache = std::make_shared<JitCache>();
};

}  // namespace detail

// f, traced and compiled once for each set of argument types and static values. Inside another
// traced function it becomes one equation.
template <class F>
detail::Jit<F> jit(F f, JitOptions options = {}) {
  return {std::move(f), std::move(options)};
}

}  // namespace reprise
#pragma GCC visibility pop
