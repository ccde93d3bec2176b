// The programs that a jit function has made so far.
#include "reprise/jit.h"

#include <algorithm>
#include <iostream>
#include <utility>

namespace reprise::detail {
namespace {

constexpr std::size_t many = 64, most = 1024;

void warn(const std::string& name, const char* of_what, const char* hint) {
  std::cerr << "reprise: warning: jit: " << name << " has been traced for more than " << many
            << " different " << of_what << ", each becomes a program of its own; " << hint << "\n";
}

}  // namespace

std::shared_ptr<const void> JitCache::find_as(const std::string& key, const char* type) const {
  const std::lock_guard lock(mutex_);
  const auto it = made_.find(key);
  if (it == made_.end() || it->second.type != type) return nullptr;
  uses_.find(key)->second.last = ++calls_;
  return it->second.value;
}

void JitCache::add(const std::string& key, const Arrays& args, const std::string& name, Made made) {
  std::string types;
  append_types(types, args);
  const std::lock_guard lock(mutex_);
  if (!made_.emplace(key, std::move(made)).second) return;
  uses_.insert_or_assign(key, Use{types, ++calls_});
  const bool many_values = ++programs_of_types_[types] > many,
             many_types = programs_of_types_.size() > many;
  if (made_.size() > most) drop_oldest();
  if (many_values && !std::exchange(has_warned_of_values_, true)) {
    warn(name, "static values with arguments of the same types",
         "pass what changes from call to call as an Array");
  }
  if (many_types && !std::exchange(has_warned_of_types_, true)) {
    warn(name, "shapes or dtypes of its arguments", "pad them to a few sizes");
  }
}

void JitCache::drop_oldest() {
  const auto oldest =
      std::min_element(uses_.begin(), uses_.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
  const auto types = programs_of_types_.find(oldest->second.types);
  if (--types->second == 0) programs_of_types_.erase(types);
  made_.erase(oldest->first);
  uses_.erase(oldest);
}

}  // namespace reprise::detail
