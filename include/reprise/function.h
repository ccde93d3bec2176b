// Trees and functions: how arguments and results of any shape become lists of arrays and back.
//
// A tree is an Array, a number, text or enum (static: no arrays inside), a std::tuple, pair, array,
// vector, map or optional of trees, a Dict, or a struct:
//
//   struct Layer { rp::Array w, b; };                           // a plain aggregate: nothing to add
//   struct Model { Layer in, out; int depth; REPRISE_FIELDS(in, out, depth) };
//
// The type of a parameter decides: Arrays inside it are traced, the rest is static.
#pragma once

#include "reprise/array.h"
#include "reprise/fields.h"

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
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
  // The place of an entry. Assigning makes the entry and the Dicts on the way to it. Reading makes
  // nothing: a TypeError names a key that is not there and the nearest one that is.
  class Entry {
   public:
    Entry(Dict& root, std::string key) : root_(&root), path_{std::move(key)} {}
    Entry(std::shared_ptr<Dict> owned, std::string key) : Entry(*owned, std::move(key)) {
      owned_ = std::move(owned);
    }
    Entry(const Entry&) = default;
    Entry& operator=(const Array& value);
    Entry& operator=(Dict value);
    Entry& operator=(const Entry& other);  // what stands there
    Entry operator[](const std::string& key) const;
    operator Array() const { return array(); }  // NOLINT: reads like a value, here and below
    operator Operand() const { return Operand(array(), Location{}); }  // NOLINT
    operator Dict() const { return dict(); }                           // NOLINT
    Array array() const;
    Dict dict() const;
    Type type() const { return array().type(); }
    Shape shape() const { return array().shape(); }
    Dtype dtype() const { return array().dtype(); }

   private:
    const Node& node() const;
    Node& made() const;
    Dict* root_;
    std::shared_ptr<Dict> owned_;  // of a Dict that nobody else holds
    std::vector<std::string> path_;
  };
  Dict() = default;
  Entry operator[](const std::string& key) & { return {*this, key}; }
  Entry operator[](const std::string& key) && {
    return {std::make_shared<Dict>(std::move(*this)), key};
  }
  const Array& operator[](const std::string& key) const& { return array(key); }
  const Array& array(const std::string& key) const&;  // a TypeError when there is none
  Array array(const std::string& key) && { return array(key); }
  const Dict& dict(const std::string& key) const&;
  Dict dict(const std::string& key) && { return dict(key); }
  Dict& nested(const std::string& key);  // the Dict at the key; a new one when there is nothing
  bool contains(const std::string& key) const { return items_.count(key) != 0; }
  std::size_t size() const { return items_.size(); }
  const std::map<std::string, Node>& items() const& { return items_; }
  std::map<std::string, Node>& items() & { return items_; }
  std::map<std::string, Node> items() && { return std::move(items_); }

 private:
  std::map<std::string, Node> items_;
};

// ------------------------------------------------------------------------------------ tree traits
namespace tree {

// Every member of T in order, listed by REPRISE_FIELDS or found in a plain aggregate.
template <class T>
concept HasFields = requires(const T& t) {
  t.reprise_fields();
};

template <class T>
inline constexpr bool is_leaf = std::is_same_v<T, Array> || std::is_same_v<T, Operand>;
template <class T>
inline constexpr bool is_static =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, const char*> || std::is_same_v<T, None> ||
    std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, std::vector<bool>>;

// An argument that static_argnums takes out of tracing: its arrays are not leaves.
template <class T>
struct Static {
  Static(T v) : value(std::move(v)) {}         // NOLINT: implicit by design
  operator const T&() const { return value; }  // NOLINT
  T value;
};
template <class T>
inline constexpr bool is_static<Static<T>> = true;
template <class T>
inline constexpr bool is_pinned = false;
template <class T>
inline constexpr bool is_pinned<Static<T>> = true;

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

// Can values of type T be taken apart into arrays and put together again? Seen: the types around
// it, which a struct may hold again.
template <class T, class... Seen>
constexpr bool is_tree();
template <class Fields>
struct AllTrees;
template <class... M>
struct AllTrees<std::tuple<M...>> {
  template <class... Seen>
  static constexpr bool value = (is_tree<std::remove_cvref_t<M>, Seen...>() && ...);
};
template <class A, class B>
struct AllTrees<std::pair<A, B>> : AllTrees<std::tuple<A, B>> {};
template <class T, class... Seen>
constexpr bool is_tree() {
  if constexpr (requires { typename T::reprise_inspection; }) {
    return false;  // an object with variables, which copies share
  } else if constexpr (is_leaf<T> || is_static<T> || std::is_same_v<T, Dict> ||
                       (std::is_same_v<T, Seen> || ...)) {
    return true;
  } else if constexpr (is_tuple<T>) {
    return AllTrees<T>::template value<Seen...>;
  } else if constexpr (is_sequence<T> || is_optional<T>) {
    return is_tree<typename T::value_type, Seen...>();
  } else if constexpr (is_map<T>) {
    return is_tree<typename T::mapped_type, Seen...>();
  } else if constexpr (HasFields<T>) {
    return AllTrees<decltype(std::declval<const T&>().reprise_fields())>::template value<T,
                                                                                         Seen...>;
  } else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>) {
    return AllTrees<decltype(aggregate_fields(std::declval<const T&>()))>::template value<T,
                                                                                          Seen...>;
  } else {
    return false;
  }
}

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

// A tree without the values of its leaves: what is kept for its structure alone holds no memory.
template <class T>
void drop_leaves(T& t) {
  if constexpr (std::is_same_v<T, Array>) {
    t = Array();
  } else if constexpr (std::is_same_v<T, Operand>) {
    t.array = Array();
  } else if constexpr (!is_static<T>) {
    each_child(t, [](auto& child, const auto&) { drop_leaves(child); });
  }
}
template <class T>
T structure_of(T t) {
  drop_leaves(t);
  return t;
}

template <class T>
void paths(const T& t, const std::string& prefix, std::vector<std::string>& out) {
  if constexpr (is_leaf<T>) {
    out.push_back(prefix);
  } else if constexpr (!is_static<T>) {
    each_child(t, [&](const auto& child, const auto& path) { paths(child, prefix + path(), out); });
  }
}

// Keys of caches are bytes that can be read back in one way only: lengths stand before what varies,
// numbers as their bits, and a C++ type is the address of its mark, since two types may have one
// name.
template <class T>
inline constexpr char type_mark = 0;
template <class T>
void append_bits(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_bits(std::string& key, const long double& value);  // without its padding
template <class T>
void append_type(std::string& key) {
  const void* mark = &type_mark<T>;
  append_bits(key, mark);
}
void append_text(std::string& key, std::string_view text);
void append_text(std::string& key, const char* text);  // may be null
void append_value(std::string& key, const Array&);     // type and elements

// Structure and static values of a tree: of two trees of one C++ type, equal bytes mean that they
// differ in their arrays only. Keys that meet trees of several types start with append_type.
template <class T>
void describe(const T& t, std::string& key) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    append_bits(key, t);
  } else if constexpr (is_pinned<T>) {
    describe(t.value, key);
    Arrays leaves;
    flatten(t.value, leaves);
    for (const Array& leaf : leaves) append_value(key, leaf);
  } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
    append_text(key, std::string(t.begin(), t.end()));
  } else if constexpr (std::is_same_v<T, const char*>) {
    append_text(key, t);
  } else if constexpr (is_static<T>) {
    if constexpr (!std::is_same_v<T, None> && !std::is_same_v<T, std::nullptr_t>)
      append_text(key, std::string(t));
  } else if constexpr (!is_leaf<T>) {
    if constexpr (is_optional<T>) append_bits(key, t.has_value());
    if constexpr (is_sequence<T> || is_map<T> || std::is_same_v<T, Dict>)
      append_bits(key, t.size());
    each_child(t, [&](const auto& child, const auto& path) {
      if constexpr (is_map<T> || std::is_same_v<T, Dict>) append_text(key, path());
      if constexpr (std::is_same_v<T, Dict>)
        append_bits(key, std::is_same_v<decltype(child), const Dict&>);
      describe(child, key);
    });
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
concept HasFieldsBase = requires {
  typename T::reprise_base;
};
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
  static_assert(
      lists_every_member<Self, M...>(),
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
#define REPRISE_OVERRIDES_BEGIN    \
  _Pragma("clang diagnostic push") \
      _Pragma("clang diagnostic ignored \"-Winconsistent-missing-override\"")
#define REPRISE_OVERRIDES_END _Pragma("clang diagnostic pop")
#else
#define REPRISE_OVERRIDES_BEGIN
#define REPRISE_OVERRIDES_END
#endif

// Makes a struct a tree whose fields have names in paths and messages. It lists every member, in
// order; a plain aggregate needs it only for the names.
#define REPRISE_FIELDS(...)                                                       \
  auto reprise_fields() {                                                         \
    return ::reprise::tree::checked_fields<std::remove_cvref_t<decltype(*this)>>( \
        std::tie(__VA_ARGS__));                                                   \
  }                                                                               \
  auto reprise_fields() const {                                                   \
    return ::reprise::tree::checked_fields<std::remove_cvref_t<decltype(*this)>>( \
        std::tie(__VA_ARGS__));                                                   \
  }                                                                               \
  static std::vector<std::string> reprise_field_names() {                         \
    return ::reprise::tree::split_names(#__VA_ARGS__);                            \
  }                                                                               \
  REPRISE_OVERRIDES_BEGIN                                                         \
  void reprise_visit(::reprise::nnx::Fields& reprise_to) {                        \
    ::reprise::tree::visit_fields(*this, reprise_to);                             \
  }                                                                               \
  std::shared_ptr<::reprise::nnx::Module> reprise_copy() const {                  \
    return ::reprise::tree::copy_of(*this);                                       \
  }                                                                               \
  REPRISE_OVERRIDES_END

}  // namespace reprise
#pragma GCC visibility pop
