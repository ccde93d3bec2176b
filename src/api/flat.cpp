#include "api/flat.h"

#include "program/recent.h"

namespace reprise {

Types types_of(const Arrays& xs) {
  Types types;
  types.reserve(xs.size());
  for (const Array& x : xs) types.push_back(x.type());
  return types;
}

Traced trace_callee(const detail::Callee& f, const char* transform, const Types& in,
                    const Arrays* values) {
  Traced t = trace(f.run, in,
                   {.transform = transform, .name = f.name, .arg_names = f.arg_names, .concrete_args = values});
  if (!is_tracing()) t.program = recent(std::move(t.program));
  return t;
}

Arrays with_consts(const Arrays& consts, const Arrays& args) {
  Arrays all = consts;
  all.insert(all.end(), args.begin(), args.end());
  return all;
}

Array finished(const Array& a) {
  if (!content(a).number() || is_tracing()) return a;
  return with_type(a, a.type());
}
Arrays finished(Arrays xs) {
  for (Array& x : xs) x = finished(x);
  return xs;
}

void check_leaf_count(std::size_t wanted, std::size_t got) {
  if (wanted != got) {
    fail<TypeError>("tree_unflatten: the number of leaves must match, got ", got, " for ", wanted);
  }
}

namespace tree {
std::string value_text(const Array& a) {
  std::string text = to_string(a.type()) + (a.weak_type() ? "w" : "");
  if (is_traced(a)) return text + str("#", identity(a), ";");
  return text.append(reinterpret_cast<const char*>(elements<std::byte>(a)), a.nbytes());
}

std::vector<std::string> split_names(const char* list) {
  std::vector<std::string> names(1);
  for (const char* c = list; *c != '\0'; ++c) {
    if (*c == ',') {
      names.emplace_back();
    } else if (*c != ' ' && *c != '\n') {
      names.back() += *c;
    }
  }
  return names;
}
}  // namespace tree

// ------------------------------------------------------------------------------------------- Dict
namespace {
std::string key_list(const Dict& d) {
  std::vector<std::string> keys;
  for (const auto& item : d.items()) keys.push_back("'" + item.first + "'");
  return join(keys, ", ");
}
template <class T, class D>
auto& child(D& d, const std::string& key, const char* what) {
  const auto it = d.items().find(key);
  if (it == d.items().end()) {
    fail<TypeError>("dict: no such key, got '", key, "' where the keys are ", key_list(d));
  }
  auto* value = std::get_if<T>(&it->second);
  if (value == nullptr) fail<TypeError>("dict: the entry is not ", what, ", got key '", key, "'");
  return *value;
}
}  // namespace

const Array& Dict::array(const std::string& key) const { return child<Array>(*this, key, "an array"); }
const Dict& Dict::dict(const std::string& key) const { return child<Dict>(*this, key, "a dict"); }
Dict::Entry& Dict::Entry::operator=(const Array& value) {
  parent_->items_[key_] = value;
  return *this;
}
Dict::Entry& Dict::Entry::operator=(Dict value) {
  parent_->items_[key_] = std::move(value);
  return *this;
}
Dict& Dict::Entry::dict() const {
  const auto it = parent_->items_.find(key_);
  if (it == parent_->items_.end()) {
    return std::get<Dict>(parent_->items_.emplace(key_, Dict()).first->second);
  }
  return child<Dict>(*parent_, key_, "a dict");
}
Dict::Entry Dict::Entry::operator[](const std::string& key) const { return {dict(), key}; }
const Array& Dict::Entry::array() const { return parent_->array(key_); }
Dict::Entry::operator Array() const { return array(); }

}  // namespace reprise
