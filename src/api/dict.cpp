// Dict: reading says what is missing, writing makes what is needed.
#include "base/error.h"
#include "base/nearest.h"
#include "reprise/function.h"

#include <algorithm>

namespace reprise {
namespace {

[[noreturn]] void no_such_key(const Dict& d, const std::string& key) {
  std::vector<std::string> keys;
  for (const auto& item : d.items()) keys.push_back("'" + item.first + "'");
  if (keys.empty()) fail<TypeError>("dict: no such key, got '", key, "' where there are no keys");
  const auto nearest =
      std::min_element(d.items().begin(), d.items().end(), [&](const auto& a, const auto& b) {
        return edit_distance(key, a.first) < edit_distance(key, b.first);
      });
  fail_with_hint<TypeError>("the nearest key is '" + nearest->first + "'",
                            "dict: no such key, got '", key, "' where the keys are ",
                            join(keys, ", "));
}

const Dict::Node& node_at(const Dict& d, const std::string& key) {
  const auto it = d.items().find(key);
  if (it == d.items().end()) no_such_key(d, key);
  return it->second;
}
template <class T, class N>
auto& as(N& node, const std::string& key, const char* what) {
  auto* value = std::get_if<T>(&node);
  if (value == nullptr) fail<TypeError>("dict: the entry is not ", what, ", got key '", key, "'");
  return *value;
}

}  // namespace

const Array& Dict::array(const std::string& key) const& {
  return as<Array>(node_at(*this, key), key, "an array");
}
const Dict& Dict::dict(const std::string& key) const& {
  return as<Dict>(node_at(*this, key), key, "a dict");
}
Dict& Dict::nested(const std::string& key) {
  return as<Dict>(items_.try_emplace(key, Dict()).first->second, key, "a dict");
}

const Dict::Node& Dict::Entry::node() const {
  const Dict* at = root_;
  for (std::size_t i = 0; i + 1 < path_.size(); ++i) at = &at->dict(path_[i]);
  return node_at(*at, path_.back());
}
Dict::Node& Dict::Entry::made() const {
  Dict* at = root_;
  for (std::size_t i = 0; i + 1 < path_.size(); ++i) at = &at->nested(path_[i]);
  return at->items_[path_.back()];
}
Dict::Entry& Dict::Entry::operator=(const Array& value) {
  made() = value;
  return *this;
}
Dict::Entry& Dict::Entry::operator=(Dict value) {
  made() = std::move(value);
  return *this;
}
Dict::Entry& Dict::Entry::operator=(const Entry& other) {
  Node value = other.node();  // a copy: it may stand below the place that it is written to
  made() = std::move(value);
  return *this;
}
Dict::Entry Dict::Entry::operator[](const std::string& key) const {
  Entry inner = *this;
  inner.path_.push_back(key);
  return inner;
}
Array Dict::Entry::array() const { return as<Array>(node(), path_.back(), "an array"); }
Dict Dict::Entry::dict() const { return as<Dict>(node(), path_.back(), "a dict"); }

}  // namespace reprise
