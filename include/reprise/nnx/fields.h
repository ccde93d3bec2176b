// What a module consists of, seen at run time. Library plumbing: users meet it through
// REPRISE_FIELDS, nnx::Static and nnx::Data.
#pragma once

#include "reprise/function.h"
#include "reprise/nnx/variable.h"

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

class Module;

// ------------------------------------------------------------------------------------------ paths
// One step of a path: the name of a member, or a position in a list.
class Key {
 public:
  Key(const char* name) : name_(name) {}             // NOLINT: implicit by design, here and below
  Key(std::string name) : name_(std::move(name)) {}  // NOLINT
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Key(T position)
      : is_name_(false), position_(static_cast<std::int64_t>(position)) {}  // NOLINT
  bool is_name() const { return is_name_; }
  const std::string& name() const { return name_; }
  std::int64_t position() const { return position_; }
  bool operator==(const Key&) const = default;
  auto operator<=>(const Key&) const = default;  // positions first

 private:
  bool is_name_ = true;
  std::int64_t position_ = 0;
  std::string name_;
};
using Path = std::vector<Key>;
std::string to_string(const Key&);                       // 'kernel' or 0
std::string to_string(const Path&);                      // ('layers', 0, 'kernel')
std::string joined(const Path&, const char* separator);  // layers/0/kernel

// ----------------------------------------------------------------------------- static and data
// A member that transforms leave alone although its type does not say so: a function, a table of
// numbers. Assigning another value makes jit trace again.
template <class T>
class Static {
 public:
  Static() : Static(T{}) {}
  Static(T value)
      : value_(std::move(value)), serial_(next_serial()) {}  // NOLINT: implicit by design
  Static& operator=(T value) { return *this = Static(std::move(value)); }
  const T& get() const { return value_; }
  operator const T&() const { return value_; }  // NOLINT
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  std::uint64_t serial() const { return serial_; }

 private:
  static std::uint64_t next_serial();
  T value_;
  std::uint64_t serial_;
};
namespace detail {
std::uint64_t next_static_serial();
}
template <class T>
std::uint64_t Static<T>::next_serial() {
  return detail::next_static_serial();
}

// A member whose arrays are data although they stand in a plain container:
// nnx::Data<std::vector<Array>>.
template <class T>
class Data {
 public:
  Data() = default;
  Data(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  T& get() { return value_; }
  const T& get() const { return value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_{};
};

namespace detail {

template <class T>
inline constexpr bool is_static_box = false;
template <class T>
inline constexpr bool is_static_box<Static<T>> = true;
template <class T>
inline constexpr bool is_data_box = false;
template <class T>
inline constexpr bool is_data_box<Data<T>> = true;
template <class T>
inline constexpr bool is_pointer_to_module = false;
template <class T>
inline constexpr bool is_pointer_to_module<std::shared_ptr<T>> = std::is_base_of_v<Module, T>;
template <class T>
inline constexpr bool is_function_pointer =
    std::is_pointer_v<T>&& std::is_function_v<std::remove_pointer_t<T>>;
template <class T>
inline constexpr bool is_any_map = tree::is_map<T>;
template <class K, class V>
inline constexpr bool is_any_map<std::map<K, V>> = true;

template <class T>
constexpr bool is_variable() {
  return std::is_base_of_v<Variable, T>;
}
template <class T>
constexpr bool is_module() {
  return std::is_base_of_v<Module, T>;
}

// Does a type hold arrays, variables or modules?
template <class T>
constexpr bool holds_data();
template <class... T>
constexpr bool any_holds_data(std::tuple<T...>*) {
  return (holds_data<T>() || ...);
}
template <class A, class B>
constexpr bool any_holds_data(std::pair<A, B>*) {
  return holds_data<A>() || holds_data<B>();
}
template <class... T>
constexpr bool any_member_holds_data(std::tuple<T&...>*) {
  return (holds_data<std::remove_const_t<T>>() || ...);
}
template <class T>
concept OwnFields = requires {
  typename T::reprise_own_fields;
};
template <class T>
constexpr bool holds_data() {
  if constexpr (is_variable<T>() || is_module<T>() || tree::is_leaf<T> || is_data_box<T> ||
                is_pointer_to_module<T> || std::is_same_v<T, reprise::Dict>) {
    return true;
  } else if constexpr (tree::is_static<T> || is_static_box<T> || is_function_pointer<T>) {
    return false;
  } else if constexpr (tree::is_tuple<T>) {
    return any_holds_data(static_cast<T*>(nullptr));
  } else if constexpr (tree::is_sequence<T> || tree::is_optional<T>) {
    return holds_data<typename T::value_type>();
  } else if constexpr (is_any_map<T>) {
    return holds_data<typename T::mapped_type>();
  } else if constexpr (OwnFields<T>) {
    return true;
  } else if constexpr (tree::HasFields<T>) {
    using Members = decltype(std::declval<T&>().reprise_fields());
    return any_member_holds_data(static_cast<Members*>(nullptr));
  } else if constexpr (std::is_aggregate_v<T>) {
    using Members = decltype(tree::aggregate_fields(std::declval<T&>()));
    return any_member_holds_data(static_cast<Members*>(nullptr));
  } else {
    return false;
  }
}

// Static values: of one C++ type, equal bytes mean equal values; and how they print.
template <class T>
void describe_static(const T& t, std::string& key) {
  if constexpr (is_static_box<T>) {
    tree::append_bits(key, t.serial());
  } else if constexpr (is_function_pointer<T>) {
    tree::append_bits(key, t);
  } else if constexpr (tree::is_static<T>) {
    tree::describe(t, key);
  } else if constexpr (tree::is_optional<T>) {
    tree::append_bits(key, t.has_value());
    if (t) describe_static(*t, key);
  } else if constexpr (is_any_map<T>) {
    tree::append_bits(key, t.size());
    for (const auto& [name, value] : t) {
      describe_static(name, key);
      describe_static(value, key);
    }
  } else {
    if constexpr (tree::is_sequence<T>) tree::append_bits(key, t.size());
    tree::each_child(t, [&](const auto& child, const auto&) { describe_static(child, key); });
  }
}
std::string repr_text(const std::string&);
std::string repr_number(double);
std::string repr_dtype(Dtype);
template <class T>
std::string repr_static(const T& t) {
  if constexpr (std::is_same_v<T, Dtype>) {
    return repr_dtype(t);
  } else if constexpr (std::is_same_v<T, bool>) {
    return t ? "True" : "False";
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, const char*>) {
    return repr_text(t);
  } else if constexpr (std::is_floating_point_v<T>) {
    return repr_number(static_cast<double>(t));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(t);
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(t));
  } else if constexpr (tree::is_optional<T>) {
    return t ? repr_static(*t) : "None";
  } else if constexpr (tree::is_sequence<T>) {
    std::string text;
    for (const auto& item : t)
      text += (text.empty() ? "" : ", ") + repr_static<typename T::value_type>(item);
    return "(" + text + (t.size() == 1 ? ",)" : ")");
  } else if constexpr (is_function_pointer<T> || is_static_box<T>) {
    return "<" + type_name(typeid(T)) + ">";
  } else {
    return type_name(typeid(T)) + "(...)";
  }
}

// How the core treats a static value of one type.
struct StaticType {
  void (*describe)(const void*, std::string& key);
  std::string (*repr)(const void*);
  const std::type_info* type;
};
template <class T>
inline const StaticType static_type{
    [](const void* t, std::string& key) { describe_static(*static_cast<const T*>(t), key); },
    [](const void* t) { return repr_static(*static_cast<const T*>(t)); }, &typeid(T)};

struct StaticValue {
  void* address;
  const StaticType* type;
};
// A member that shares its module with others.
struct ModulePointer {
  void* member;
  Module* target;
  void (*set)(void* member, const std::shared_ptr<Module>&);
};
struct NoValue {};  // an optional member that is not there

}  // namespace detail

// One member and what it holds.
struct Field {
  Key key;
  std::variant<detail::NoValue, Variable*, Array*, Module*, detail::ModulePointer,
               std::vector<Field>, detail::StaticValue>
      what;
};

namespace detail {
// A class derived from a module that has members of its own lists all of them again.
template <class M>
constexpr bool check_members() {
  if constexpr (tree::HasFields<M>) {
    using Checked = decltype(tree::checked_fields<M>(std::declval<M&>().reprise_fields()));
    static_assert(std::tuple_size_v<Checked> + 1 > 0);
  }
  return true;
}
}  // namespace detail

// A list of members, or of arguments.
class Fields {
 public:
  // A member of a module: of a type that says whether it is data.
  template <class T>
  void add_member(const Key& key, T& member) {
    constexpr bool single = detail::is_variable<T>() || detail::is_module<T>() ||
                            tree::is_leaf<T> || detail::is_data_box<T> ||
                            detail::is_static_box<T> || detail::is_pointer_to_module<T>;
    static_assert(
        single || !(tree::is_sequence<T> && detail::holds_data<T>()),
        "a plain vector or array of modules, variables or arrays cannot be a member of an "
        "nnx::Module: use nnx::List<...> (or nnx::Data<...> for arrays)");
    static_assert(
        single || !(detail::is_any_map<T> && detail::holds_data<T>()),
        "a plain map of modules, variables or arrays cannot be a member of an nnx::Module: "
        "use nnx::Dict<...> (or nnx::Data<...> for arrays)");
    static_assert(single || tree::is_optional<T> || detail::is_any_map<T> || tree::is_sequence<T> ||
                      !detail::holds_data<T>(),
                  "a struct or tuple that holds data cannot be a plain member of an nnx::Module: "
                  "derive the struct from nnx::Module, or use nnx::Data<...> for arrays");
    add(key, member);
  }
  // Anything: arguments and results of functions are trees of modules, variables and arrays.
  template <class T>
  void add(const Key& key, T& member);

  std::vector<Field>& list() { return list_; }
  const std::vector<Field>& list() const { return list_; }

 private:
  template <class T>
  void add_children(const Key& key, T& member);
  std::vector<Field> list_;
};

template <class T>
void Fields::add_children(const Key& key, T& member) {
  Fields inside;
  if constexpr (detail::OwnFields<T>) {
    member.reprise_visit(inside);
  } else if constexpr (std::is_same_v<T, reprise::Dict>) {
    for (auto& [name, node] : member.items()) {
      std::visit([&, &n = name](auto& value) { inside.add(n, value); }, node);
    }
  } else if constexpr (tree::is_map<T>) {
    for (auto& [name, value] : member) inside.add(name, value);
  } else if constexpr (tree::is_tuple<T>) {
    int i = 0;
    std::apply([&](auto&... m) { (inside.add(i++, m), ...); }, member);
    static_cast<void>(i);
  } else if constexpr (tree::is_sequence<T>) {
    for (std::size_t i = 0; i < member.size(); ++i) inside.add(i, member[i]);
  } else {
    const std::vector<std::string> names = tree::Traits<T>::field_names();
    std::size_t i = 0;
    auto next = [&] { return i < names.size() ? Key(names[i]) : Key(i); };
    std::apply([&](auto&... m) { ((inside.add(next(), m), ++i), ...); },
               tree::Traits<T>::fields(member));
    static_cast<void>(i);
    static_cast<void>(next);
  }
  list_.push_back({key, std::move(inside.list_)});
}

template <class T>
void Fields::add(const Key& key, T& member) {
  using U = std::remove_const_t<T>;
  U& target = const_cast<U&>(member);  // a transform swaps values in and restores them
  if constexpr (detail::is_variable<U>()) {
    list_.push_back({key, static_cast<Variable*>(&target)});
  } else if constexpr (detail::is_module<U>()) {
    detail::check_members<U>();
    list_.push_back({key, static_cast<Module*>(&target)});
  } else if constexpr (std::is_same_v<U, Array>) {
    list_.push_back({key, &target});
  } else if constexpr (detail::is_data_box<U>) {
    add_children(key, target.get());
  } else if constexpr (detail::is_pointer_to_module<U>) {
    using M = typename U::element_type;
    auto set = [](void* pointer, const std::shared_ptr<Module>& m) {
      *static_cast<U*>(pointer) = std::dynamic_pointer_cast<M>(m);
    };
    if (target) {
      list_.push_back({key, detail::ModulePointer{&target, target.get(), set}});
    } else {
      list_.push_back({key, detail::NoValue{}});
    }
  } else if constexpr (tree::is_optional<U> && detail::holds_data<U>()) {
    if (target) {
      add(key, *target);
    } else {
      list_.push_back({key, detail::NoValue{}});
    }
  } else if constexpr (detail::holds_data<U>()) {
    add_children(key, target);
  } else {
    static_assert(
        tree::is_static<U> || detail::is_static_box<U> || detail::is_function_pointer<U> ||
            tree::is_optional<U> || tree::is_sequence<U> || tree::is_tuple<U> ||
            detail::is_any_map<U> || tree::HasFields<U> || std::is_aggregate_v<U>,
        "nnx cannot tell whether this value is data: use Variables, Modules, Arrays, "
        "nnx::List, nnx::Dict, numbers, text and containers of these, or wrap a value that "
        "transforms leave alone, such as a std::function, in nnx::Static<...>");
    list_.push_back({key, detail::StaticValue{&target, &detail::static_type<U>}});
  }
}

}  // namespace reprise::nnx
#pragma GCC visibility pop
