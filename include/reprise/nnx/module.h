// Modules: objects that hold their state. A module is a struct that lists its members.
//
//   struct MLP : nnx::Module {
//     nnx::List<nnx::Linear> layers;
//     MLP(int num_layers, int features, nnx::Rngs& rngs) {
//       for (int i = 0; i < num_layers; ++i) layers.append(nnx::Linear(features, features, rngs));
//     }
//     Array operator()(Array x) {
//       for (auto& layer : layers) x = rp::nn::relu(layer(x));
//       return x;
//     }
//     REPRISE_FIELDS(layers)
//   };
//
// Members are data (Variables, Modules, Arrays, nnx::List, nnx::Dict, std::optional and
// std::shared_ptr of these, nnx::Data<tree>) or static (numbers, enums, text, containers of these,
// nnx::Static<T>). Copying a module copies the static members and shares the variables; nnx::clone
// makes new variables.
#pragma once

#include "reprise/nnx/fields.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

namespace detail {
struct Sown;  // variables that were added while the module ran
template <class... M>
void visit_listed(std::tuple<M&...> members, const std::vector<std::string>& names, Fields& out) {
  std::size_t i = 0;
  std::apply([&](auto&... m) { ((out.add_member(names[i], m), ++i), ...); }, members);
  static_cast<void>(i);
}
[[noreturn]] void dict_key_error(const std::string& key, const std::vector<std::string>& keys,
                                 Location at);
// The position, counted from the end when negative; a TypeError when there is none.
std::size_t list_position(std::int64_t index, std::size_t size, Location at);
}  // namespace detail

using Attributes = std::vector<std::pair<std::string, bool>>;  // for train, eval and set_attributes

class Module {
 public:
  virtual ~Module() = default;

  // Sets `deterministic` and `use_running_average` in this module and all below: false for
  // training, true for evaluation.
  void train();
  void eval();
  // Sets bool members of these names, here and below; a TypeError for a name that no module has.
  void set_attributes(const Attributes& attributes, Location at = Location::current());

  // Keeps a value for the caller, under a name: nnx::pop(model, nnx::OfType<nnx::Intermediate>)
  // takes what was sown since the last time. Several values of one name are kept in order.
  template <class V = Intermediate>
  void sow(const std::string& name, Array value, Location at = Location::current()) {
    sow_variable(name, V(std::move(value)), at);
  }

  // Defined by REPRISE_FIELDS(members...), which every module needs.
  virtual void reprise_visit(Fields& out) = 0;
  virtual std::shared_ptr<Module> reprise_copy() const = 0;

  using reprise_base = Module;
  using reprise_inspection = detail::Inspection;
  template <class T>
  static void reprise_visit_fields(T& module, Fields& out) {
    detail::visit_listed(module.reprise_fields(), T::reprise_field_names(), out);
  }
  template <class T>
  static std::shared_ptr<Module> reprise_copy_of(const T& module) {
    return std::make_shared<T>(module);
  }
  std::shared_ptr<detail::Sown>& reprise_sown() { return sown_; }

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) = default;

 private:
  void sow_variable(const std::string& name, const Variable& value, Location at);
  std::shared_ptr<detail::Sown> sown_;
};
std::ostream& operator<<(std::ostream&, const Module&);  // as Flax's repr
std::string to_string(const Module&);

// REPRISE_FIELDS in two halves, for modules in headers that many files include: the struct
// declares, one source file lists the members. Each file then compiles faster.
#define REPRISE_FIELDS_DECLARED                                    \
  void reprise_visit(::reprise::nnx::Fields& fields_out) override; \
  std::shared_ptr<::reprise::nnx::Module> reprise_copy() const override;
#define REPRISE_FIELDS_OF(Class, ...)                                   \
  void Class::reprise_visit(::reprise::nnx::Fields& fields_out) {       \
    ::reprise::nnx::detail::visit_listed(                               \
        ::reprise::tree::checked_fields<Class>(std::tie(__VA_ARGS__)),  \
        ::reprise::tree::split_names(#__VA_ARGS__), fields_out);        \
  }                                                                     \
  std::shared_ptr<::reprise::nnx::Module> Class::reprise_copy() const { \
    return std::make_shared<Class>(*this);                              \
  }

// ------------------------------------------------------------------------------------- containers
// A list of modules, variables, arrays or static values, as a member of a module. Positions are
// part of the paths: ('layers', 0, 'kernel').
template <class T>
class List final : public Module {
 public:
  static_assert(!std::is_same_v<T, bool>, "nnx::List<bool>: use nnx::List<int>");
  List() = default;
  List(std::initializer_list<T> items) : items_(items) {}
  explicit List(std::vector<T> items) : items_(std::move(items)) {}

  void append(T item) { items_.push_back(std::move(item)); }
  void insert(std::int64_t index, T item) {  // before the index, at the end for the size
    const auto n = static_cast<std::int64_t>(items_.size());
    index = index < 0 ? std::max<std::int64_t>(0, index + n) : std::min(index, n);
    items_.insert(items_.begin() + index, std::move(item));
  }
  void extend(const std::vector<T>& more) { items_.insert(items_.end(), more.begin(), more.end()); }
  T pop(std::int64_t index = -1, Location at = Location::current()) {
    const std::size_t i = detail::list_position(index, items_.size(), at);
    T item = std::move(items_[i]);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(i));
    return item;
  }
  void clear() { items_.clear(); }
  T& operator[](std::int64_t index) {
    return items_[detail::list_position(index, items_.size(), Location{})];
  }
  const T& operator[](std::int64_t index) const {
    return items_[detail::list_position(index, items_.size(), Location{})];
  }
  std::vector<T> slice(std::int64_t begin, std::int64_t end) const {  // as Python's [begin:end]
    const auto n = static_cast<std::int64_t>(items_.size());
    auto clipped = [n](std::int64_t i) {
      return std::min(std::max<std::int64_t>(i < 0 ? i + n : i, 0), n);
    };
    const std::int64_t from = clipped(begin), to = std::max(from, clipped(end));
    return {items_.begin() + from, items_.begin() + to};
  }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  void reprise_visit(Fields& out) override {
    for (std::size_t i = 0; i < items_.size(); ++i) out.add_member(i, items_[i]);
  }
  std::shared_ptr<Module> reprise_copy() const override { return std::make_shared<List>(*this); }

 private:
  std::vector<T> items_;
};

// Modules, variables, arrays or static values by name.
template <class T>
class Dict final : public Module {
 public:
  Dict() = default;
  Dict(std::initializer_list<std::pair<const std::string, T>> items) : items_(items) {}
  explicit Dict(std::map<std::string, T> items) : items_(std::move(items)) {}

  // Adds the entry, or replaces it.
  void set(const std::string& key, T value) { items_.insert_or_assign(key, std::move(value)); }
  bool erase(const std::string& key) { return items_.erase(key) != 0; }
  bool contains(const std::string& key) const { return items_.count(key) != 0; }
  T& operator[](const std::string& key) { return find(items_, key); }
  const T& operator[](const std::string& key) const { return find(items_, key); }
  std::size_t size() const { return items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  void reprise_visit(Fields& out) override {
    for (auto& [key, value] : items_) out.add_member(key, value);
  }
  std::shared_ptr<Module> reprise_copy() const override { return std::make_shared<Dict>(*this); }

 private:
  template <class Items>
  static auto& find(Items& items, const std::string& key) {
    const auto it = items.find(key);
    if (it == items.end()) {
      std::vector<std::string> keys;
      for (const auto& item : items) keys.push_back(item.first);
      detail::dict_key_error(key, keys, Location{});
    }
    return it->second;
  }
  std::map<std::string, T> items_;
};

}  // namespace reprise::nnx
#pragma GCC visibility pop
