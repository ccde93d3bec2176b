// States: the arrays of a module by path; and filters that choose among them.
//
//   nnx::State params = nnx::state(model, nnx::OfType<nnx::Param>);
//   Array kernel = params["layers"][0]["kernel"];
#pragma once

#include "reprise/named_leaves.h"
#include "reprise/nnx/module.h"

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// One array of a state: where it is, and what.
struct Leaf {
  Path path;
  const Kind* kind = nullptr;  // none: an Array that is no Variable
  std::string tag = {};
  Array value = {};
};

// ---------------------------------------------------------------------------------------- filters
template <class V>
struct OfTypeFilter {};
template <class V>
inline constexpr OfTypeFilter<V> OfType{};  // variables of kind V, or of a kind derived from it

// Which leaves are meant: OfType<Param>, a tag ("dropout": the random state of that stream), true,
// rp::ellipsis (all the others), false, a list (any of them), or a function of a Leaf.
class Filter {
 public:
  using Predicate = std::function<bool(const Leaf&)>;
  Filter(Predicate matches, std::string text)
      : matches_(std::move(matches)), text_(std::move(text)) {}
  Filter(std::same_as<bool> auto all)  // NOLINT: implicit by design, here and below
      : Filter([all](const Leaf&) { return all; }, all ? "True" : "False") {}
  Filter(Ellipsis) : Filter([](const Leaf&) { return true; }, "...") {}  // NOLINT
  Filter(const char* tag) : Filter(with_tag(tag)) {}                     // NOLINT
  Filter(const std::string& tag) : Filter(with_tag(tag)) {}              // NOLINT
  Filter(std::initializer_list<Filter> any);                             // NOLINT
  template <class V>
  Filter(OfTypeFilter<V>)  // NOLINT
      : Filter(of_kind(kind_of<V>())) {}
  template <class F>
  requires(std::predicate<const F&, const Leaf&> && !std::same_as<F, Filter>) Filter(F matches)
      : Filter(Predicate(std::move(matches)), "<function>") {}  // NOLINT

  bool operator()(const Leaf& leaf) const { return matches_(leaf); }
  const std::string& str() const { return text_; }

 private:
  static Filter with_tag(const std::string& tag);
  static Filter of_kind(const Kind& kind);
  Predicate matches_;
  std::string text_;
};
Filter Any(std::initializer_list<Filter> filters);
Filter All(std::initializer_list<Filter> filters);
Filter Not(const Filter& filter);
Filter PathContains(const Key& key);  // a step of the path is this
Filter PathIn(std::initializer_list<Path> paths);
Filter WithTag(const std::string& tag);
Filter Everything();
Filter Nothing();

// ------------------------------------------------------------------------------------------ State
// Where the arrays of a State are, and of what kind.
class StateLayout {
 public:
  StateLayout() = default;
  explicit StateLayout(std::vector<Leaf> leaves);  // their values do not count
  const std::vector<Leaf>& leaves() const;
  operator std::string() const;  // NOLINT: equal texts, equal layouts
  bool operator==(const StateLayout& other) const {
    return std::string(*this) == std::string(other);
  }

 private:
  std::shared_ptr<const std::vector<Leaf>> leaves_;
};

// Arrays by path, sorted. A tree like any other: tree_map, optimisers, arguments of transforms.
class State {
 public:
  State() = default;
  explicit State(std::vector<Leaf> leaves);  // a TypeError for two leaves at one path

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  Leaf leaf(std::size_t i) const;
  std::vector<Leaf> leaves() const;
  bool contains(const Path& path) const;
  const Array& at(const Path& path,
                  Location at = Location::current()) const;  // a TypeError if it is not there
  void set(const Path& path, Array value, Location at = Location::current());

  // state["layers"][0]["kernel"] reads as an Array, state["layers"] as a State.
  class View {
   public:
    View(const State& state, Path path) : state_(&state), path_(std::move(path)) {}
    View operator[](const Key& key) const;
    const Array& get_value() const { return state_->at(path_, Location{}); }
    operator const Array&() const { return get_value(); }                  // NOLINT
    operator Operand() const { return Operand(get_value(), Location{}); }  // NOLINT
    operator State() const;                                                // NOLINT
    View(const View&) = default;
    template <class T>
    REPRISE_UNAVAILABLE("reading a State gives no place to write to: call state.set(path, value)")
    void operator=(T&&);

   private:
    const State* state_;
    Path path_;
  };
  View operator[](const Key& key) const { return {*this, {key}}; }
  State filter(const Filter& filter) const;

  using reprise_own_fields = void;  // paths of modules, not those of this class
  void reprise_visit(Fields& out);
  auto reprise_fields() { return std::tie(layout_, values_); }
  auto reprise_fields() const { return std::tie(layout_, values_); }
  static std::vector<std::string> reprise_field_names() { return {"layout", "values"}; }

 private:
  StateLayout layout_;
  std::vector<Array> values_;
};
std::ostream& operator<<(std::ostream&, const State&);
std::string to_string(const State&);

State merge_state(const std::vector<State>& states);
template <class... S>
State merge_state(const State& first, const S&... more) {
  return merge_state(std::vector<State>{first, more...});
}
// The arrays by name, positions as text: for optimisers and files.
NamedLeaves named_leaves(const State& state);
// By name, positions as text: dict["layers"]["0"]["kernel"].
reprise::Dict to_pure_dict(const State& state);
// The state with the arrays of such a dictionary; a TypeError if paths differ.
State replace_by_pure_dict(const State& state, const reprise::Dict& values,
                           Location at = Location::current());

}  // namespace reprise::nnx
#pragma GCC visibility pop

template <>
inline constexpr bool reprise::tree::is_static<reprise::nnx::StateLayout> = true;
