// Modules taken apart and put together: structure and state.
//
//   auto [graphdef, params, rest] = nnx::split(model, nnx::OfType<nnx::Param>, rp::ellipsis);
//   MLP again = nnx::merge(graphdef, params, rest);       // new variables
//   nnx::update(model, params);                           // in place
//   MLP other = nnx::clone(model);
//
// A variable or module that is reached on several paths is one; it appears under the first path,
// where members are visited in the order of their names.
#pragma once

#include "reprise/nnx/state.h"

#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

namespace detail {
// The state by filter, and last what no filter takes.
std::vector<State> partition(const Module& module, const std::vector<Filter>& filters);
void check_exhaustive(const State& remainder, Location at);
// Values for variables of the module; with `all`, each must get one.
void update_graph(const Module& module, const State& state, bool all, Location at);
void detach_graph(Module& copy, bool keep_values);  // gives it variables of its own
void detach_fields(const Fields& fields, bool keep_values);
std::string describe_graph(const Module& module);  // equal texts: equal structure
State pop_sown(Module& module, const Filter& filter);
template <class M>
constexpr bool is_node() {
  using T = std::remove_cvref_t<M>;
  if constexpr (is_module<T>()) {
    return check_members<T>();
  } else {
    return false;
  }
}
}  // namespace detail

// The structure of a module without its arrays.
template <class M>
class GraphDef {
 public:
  explicit GraphDef(const M& module) {
    static_assert(detail::is_node<M>(), "nnx::GraphDef needs an nnx::Module");
    auto copy = std::make_shared<M>(module);
    detail::detach_graph(*copy, /*keep_values=*/false);
    text_ = detail::describe_graph(*copy);
    prototype_ = std::move(copy);
  }
  const M& prototype() const { return *prototype_; }
  bool operator==(const GraphDef& other) const { return text_ == other.text_; }

 private:
  std::shared_ptr<const M> prototype_;
  std::string text_;
};

// The structure of a module without its state.
template <class M>
GraphDef<M> graphdef(const M& module) {
  return GraphDef<M>(module);
}

// (GraphDef, State), or (GraphDef, one State per filter): each leaf goes to the first filter that
// takes it, a TypeError if none does; rp::ellipsis takes all the others.
template <class M, class... F>
auto split(const M& module, const F&... filters) {
  static_assert(detail::is_node<M>(), "nnx::split needs an nnx::Module");
  if constexpr (sizeof...(F) == 0) {
    return std::pair{GraphDef<M>(module), detail::partition(module, {Filter(true)})[0]};
  } else {
    std::vector<State> parts = detail::partition(module, {Filter(filters)...});
    detail::check_exhaustive(parts.back(), Location{});
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple{GraphDef<M>(module), std::move(parts[I])...};
    }
    (std::index_sequence_for<F...>{});
  }
}

// A new module with new variables. A TypeError when a value is missing or has no place.
template <class M, class... S>
M merge(const GraphDef<M>& graphdef, const S&... states) {
  M module = graphdef.prototype();
  detail::detach_graph(module, /*keep_values=*/false);
  detail::update_graph(module, merge_state(std::vector<State>{states...}), /*all=*/true,
                       Location{});
  return module;
}

// The state of a module, or the part that a filter takes; of several filters an array of parts.
template <class M, class... F>
auto state(const M& module, const F&... filters) {
  static_assert(detail::is_node<M>(), "nnx::state needs an nnx::Module");
  if constexpr (sizeof...(F) == 0) {
    return detail::partition(module, {Filter(true)})[0];
  } else {
    std::vector<State> parts = detail::partition(module, {Filter(filters)...});
    if constexpr (sizeof...(F) == 1) {
      return std::move(parts[0]);
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<State, sizeof...(F)>{std::move(parts[I])...};
      }
      (std::index_sequence_for<F...>{});
    }
  }
}

// Puts values into the variables of a module. A TypeError for a path that it does not have.
template <class... S>
void update(const Module& module, const State& first, const S&... more) {
  detail::update_graph(module, merge_state(std::vector<State>{first, more...}), /*all=*/false,
                       Location{});
}

// A copy with variables of its own.
template <class M>
M clone(const M& module) {
  static_assert(detail::is_node<M>(), "nnx::clone needs an nnx::Module");
  M copy = module;
  detail::detach_graph(copy, /*keep_values=*/true);
  return copy;
}

// Takes out what modules have sown (Module::sow) and the filter matches.
inline State pop(Module& module, const Filter& filter) { return detail::pop_sown(module, filter); }

// The module and all below it, each once, with paths; a module before those below it.
std::vector<std::pair<Path, Module*>> iter_modules(Module& module);

}  // namespace reprise::nnx
#pragma GCC visibility pop
