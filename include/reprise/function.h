// Trees and functions: how arguments and results of any shape become lists of arrays and back.
//
// A tree is an Array, a number, text or enum (static: no arrays inside), a std::tuple, pair, array,
// vector, map or optional of trees, a Dict, or a struct:
//
//   struct Layer { rp::Array w, b; };                                   // a plain aggregate: nothing to add
//   struct Model { Layer in, out; int depth; REPRISE_FIELDS(in, out, depth) };
//
// The type of a parameter decides: Arrays inside it are traced, the rest is static.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/array.h"

namespace reprise {

namespace nnx {
class Fields;
class Module;
}  // namespace nnx

// ------------------------------------------------------------------------------------------- Dict
// A tree whose structure is known at run time: params["params"]["Dense_0"]["kernel"].
class Dict {
 public:
  using Node = std::variant<Array, Dict>;
  Dict() = default;
  // Creates missing entries; a value is read back as an Array (or a Dict).
  class Entry {
   public:
    Entry(Dict& parent, std::string key) : parent_(&parent), key_(std::move(key)) {}
    Entry& operator=(const Array& value);
    Entry& operator=(Dict value);
    Entry operator[](const std::string& key) const;  // goes into a nested Dict
    operator Array() const;                          // NOLINT: reads like a value
    Dict& dict() const;
    const Array& array() const;

   private:
    Dict* parent_;
    std::string key_;
  };
  Entry operator[](const std::string& key) { return {*this, key}; }
  const Array& array(const std::string& key) const;  // throws TypeError naming the key
  const Dict& dict(const std::string& key) const;
  const Array& operator[](const std::string& key) const { return array(key); }
  bool contains(const std::string& key) const { return items_.count(key) != 0; }
  std::size_t size() const { return items_.size(); }
  const std::map<std::string, Node>& items() const { return items_; }
  std::map<std::string, Node>& items() { return items_; }

 private:
  std::map<std::string, Node> items_;
};

// ------------------------------------------------------------------------------------ tree traits
namespace tree {

// Every member of T in order, listed by REPRISE_FIELDS or found in a plain aggregate.
template <class T>
concept HasFields = requires(const T& t) { t.reprise_fields(); };

template <class T>
inline constexpr bool is_leaf = std::is_same_v<T, Array> || std::is_same_v<T, Operand>;
template <class T>
inline constexpr bool is_static =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, const char*> || std::is_same_v<T, None> || std::is_same_v<T, std::nullptr_t>;

// An argument that static_argnums takes out of tracing: its arrays are not leaves.
template <class T>
struct Static {
  Static(T v) : value(std::move(v)) {}           // NOLINT: implicit by design
  operator const T&() const { return value; }  // NOLINT
  T value;
};
template <class T>
inline constexpr bool is_static<Static<T>> = true;
template <class T>
inline constexpr bool is_pinned = false;
template <class T>
inline constexpr bool is_pinned<Static<T>> = true;
std::string value_text(const Array&);  // equal texts: equal type and elements

struct AnyField {
  template <class T>
  operator T() const;  // NOLINT: only counted, never defined
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField{})...}; };
}
template <class T, std::size_t N = 0>
constexpr std::size_t count_fields() {
  static_assert(N <= 12, "a plain struct with more than 12 members needs REPRISE_FIELDS");
  if constexpr (!takes<T>(std::make_index_sequence<N + 1>{})) {
    return N;
  } else {
    return count_fields<T, N + 1>();
  }
}

template <class T>
auto aggregate_fields(T& t) {
  constexpr std::size_t n = count_fields<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (n == 0) { return std::tie(); }
  else if constexpr (n == 1) { auto& [a] = t; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = t; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = t; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = t; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = t; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = t; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = t; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = t; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = t; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = t; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = t; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  // clang-format on
}

template <class T>
struct Traits {  // structs
  static_assert(HasFields<T> || std::is_aggregate_v<T>,
                "not a tree: use Arrays, numbers, std::tuple, vector, map, optional, rp::Dict, a "
                "plain struct of these, or a struct with REPRISE_FIELDS(members...)");
  static auto fields(auto& t) {
    if constexpr (HasFields<T>) {
      return t.reprise_fields();
    } else {
      return aggregate_fields(t);
    }
  }
  static std::vector<std::string> field_names() {
    if constexpr (HasFields<T>) {
      return T::reprise_field_names();
    } else {
      return {};
    }
  }
};

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_sequence = false;
template <class T>
inline constexpr bool is_sequence<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

inline std::string index_path(std::size_t i) { return "[" + std::to_string(i) + "]"; }
inline std::string key_path(const std::string& key) { return "['" + key + "']"; }

// Visits the children of a tree node: f(child, path) with path() -> "[0]", "['w']", ".w".
template <class T, class F>
void each_child(T& t, const F& f) {
  using U = std::remove_const_t<T>;
  if constexpr (is_tuple<U>) {
    std::size_t i = 0;
    std::apply([&](auto&... m) { ((f(m, [&] { return index_path(i); }), ++i), ...); }, t);
    static_cast<void>(i);
  } else if constexpr (is_sequence<U>) {
    for (std::size_t i = 0; i < t.size(); ++i) f(t[i], [&] { return index_path(i); });
  } else if constexpr (is_map<U>) {
    for (auto& [key, value] : t) f(value, [&k = key] { return key_path(k); });
  } else if constexpr (is_optional<U>) {
    if (t) f(*t, [] { return std::string(); });
  } else if constexpr (std::is_same_v<U, Dict>) {
    for (auto& [key, node] : t.items()) {
      auto path = [&k = key] { return key_path(k); };
      std::visit([&](auto& value) { f(value, path); }, node);
    }
  } else {
    const std::vector<std::string> names = Traits<U>::field_names();
    std::size_t i = 0;
    auto path = [&] { return i < names.size() ? "." + names[i] : index_path(i); };
    std::apply([&](auto&... m) { ((f(m, path), ++i), ...); }, Traits<U>::fields(t));
    static_cast<void>(i);
  }
}

template <class T>
void flatten(const T& t, Arrays& out) {
  if constexpr (is_leaf<T>) {
    out.push_back(t);
  } else if constexpr (!is_static<T>) {
    each_child(t, [&](const auto& child, const auto&) { flatten(child, out); });
  }
}

// Puts new leaves into a copy of a tree, in the order of flatten.
template <class T>
void replace_leaves(T& t, const Arrays& leaves, std::size_t& next) {
  if constexpr (std::is_same_v<T, Array>) {
    t = leaves.at(next++);
  } else if constexpr (std::is_same_v<T, Operand>) {
    t.array = leaves.at(next++);
  } else if constexpr (!is_static<T>) {
    each_child(t, [&](auto& child, const auto&) { replace_leaves(child, leaves, next); });
  }
}

template <class T>
void paths(const T& t, const std::string& prefix, std::vector<std::string>& out) {
  if constexpr (is_leaf<T>) {
    out.push_back(prefix);
  } else if constexpr (!is_static<T>) {
    each_child(t, [&](const auto& child, const auto& path) { paths(child, prefix + path(), out); });
  }
}

// Structure and static values as text: equal texts mean equal trees apart from the arrays.
template <class T>
void describe(const T& t, std::string& out) {
  if constexpr (is_leaf<T>) {
    out += '*';
  } else if constexpr (std::is_same_v<T, None> || std::is_same_v<T, std::nullptr_t>) {
    out += '-';
  } else if constexpr (std::is_enum_v<T>) {
    out += std::to_string(static_cast<long long>(t)) + ";";
  } else if constexpr (std::is_floating_point_v<T>) {
    out.append(reinterpret_cast<const char*>(&t), sizeof t);
  } else if constexpr (std::is_arithmetic_v<T>) {
    out += std::to_string(t) + ";";
  } else if constexpr (is_pinned<T>) {
    describe(t.value, out);
    Arrays leaves;
    flatten(t.value, leaves);
    for (const Array& leaf : leaves) out += value_text(leaf);
  } else if constexpr (is_static<T>) {
    const std::string text(t);
    out += std::to_string(text.size()) + ":" + text;
  } else {
    out += '(';
    each_child(t, [&](const auto& child, const auto& path) {
      if constexpr (is_map<T> || std::is_same_v<T, Dict>) out += path();
      describe(child, out);
    });
    out += ')';
  }
}

}  // namespace tree

// The arrays of a tree, in order.
template <class T>
Arrays tree_leaves(const T& t) {
  Arrays out;
  tree::flatten(t, out);
  return out;
}
// The leaves, and a function that puts other leaves into the same structure.
template <class T>
auto tree_flatten(const T& t) {
  return std::pair{tree_leaves(t), t};
}
void check_leaf_count(std::size_t wanted, std::size_t got);
template <class T>
T tree_unflatten(T structure, const Arrays& leaves) {
  std::size_t count = 0;
  {
    Arrays old;
    tree::flatten(structure, old);
    count = old.size();
  }
  check_leaf_count(count, leaves.size());
  std::size_t next = 0;
  tree::replace_leaves(structure, leaves, next);
  return structure;
}
template <class F, class T>
T tree_map(const F& f, const T& t) {
  Arrays out;
  for (const Array& leaf : tree_leaves(t)) out.push_back(f(leaf));
  return tree_unflatten(t, out);
}
template <class F, class T>
T tree_map(const F& f, const T& a, const T& b) {
  const Arrays x = tree_leaves(a), y = tree_leaves(b);
  check_leaf_count(x.size(), y.size());
  Arrays out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(f(x[i], y[i]));
  return tree_unflatten(a, out);
}
template <class T>
std::vector<std::string> tree_paths(const T& t, const std::string& prefix = "") {
  std::vector<std::string> out;
  tree::paths(t, prefix, out);
  return out;
}

// ------------------------------------------------------------------------------- REPRISE_FIELDS
namespace tree {
std::vector<std::string> split_names(const char* list);

// The size a struct has when it consists of exactly these members.
template <class... M>
constexpr std::size_t packed_size() {
  std::size_t offset = 0, align = 1;
  auto add = [&](std::size_t size, std::size_t alignment) {
    offset = (offset + alignment - 1) / alignment * alignment + size;
    align = alignment > align ? alignment : align;
  };
  (add(sizeof(M), alignof(M)), ...);
  const std::size_t size = (offset + align - 1) / align * align;
  return size == 0 ? 1 : size;
}
template <class T>
concept HasFieldsBase = requires { typename T::reprise_base; };
template <class Self, class... M>
constexpr bool lists_every_member() {
  if constexpr (HasFieldsBase<Self>) {
    return sizeof(Self) == packed_size<typename Self::reprise_base, std::remove_const_t<M>...>();
  } else {
    return sizeof(Self) == packed_size<std::remove_const_t<M>...>();
  }
}
template <class Self, class... M>
auto checked_fields(std::tuple<M&...> fields) {
  static_assert(lists_every_member<Self, M...>(),
                "REPRISE_FIELDS must list every member, in order: a member that is not listed would "
                "be left out of gradients");
  return fields;
}

// A base class that names itself reprise_base (nnx::Module) is shown the members at run time; for
// other structs these do nothing.
template <class T>
void visit_fields(T& t, nnx::Fields& out) {
  if constexpr (HasFieldsBase<T>) T::reprise_base::reprise_visit_fields(t, out);
}
template <class T>
std::shared_ptr<nnx::Module> copy_of(const T& t) {
  if constexpr (HasFieldsBase<T>) {
    return T::reprise_base::reprise_copy_of(t);
  } else {
    return nullptr;
  }
}
}  // namespace tree

// The functions that override those of nnx::Module cannot say so in structs that have no base.
#if defined(__clang__)
#define REPRISE_OVERRIDES_BEGIN \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winconsistent-missing-override\"")
#define REPRISE_OVERRIDES_END _Pragma("clang diagnostic pop")
#else
#define REPRISE_OVERRIDES_BEGIN
#define REPRISE_OVERRIDES_END
#endif

// Makes a struct a tree whose fields have names in paths and messages. It lists every member, in order; a plain
// aggregate needs it only for the names.
#define REPRISE_FIELDS(...)                                                                  \
  auto reprise_fields() {                                                                    \
    return ::reprise::tree::checked_fields<std::remove_cvref_t<decltype(*this)>>(            \
        std::tie(__VA_ARGS__));                                                              \
  }                                                                                          \
  auto reprise_fields() const {                                                              \
    return ::reprise::tree::checked_fields<std::remove_cvref_t<decltype(*this)>>(            \
        std::tie(__VA_ARGS__));                                                              \
  }                                                                                          \
  static std::vector<std::string> reprise_field_names() {                                    \
    return ::reprise::tree::split_names(#__VA_ARGS__);                                       \
  }                                                                                          \
  REPRISE_OVERRIDES_BEGIN                                                                    \
  void reprise_visit(::reprise::nnx::Fields& reprise_to) { ::reprise::tree::visit_fields(*this, reprise_to); } \
  std::shared_ptr<::reprise::nnx::Module> reprise_copy() const {                             \
    return ::reprise::tree::copy_of(*this);                                                  \
  }                                                                                          \
  REPRISE_OVERRIDES_END

}  // namespace reprise
