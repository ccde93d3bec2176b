// The programs that a jit function has made so far.
#include "reprise/jit.h"

#include <iostream>

namespace reprise::detail {

std::shared_ptr<const void> JitCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = made_.find(key);
  return it == made_.end() ? nullptr : it->second;
}

void JitCache::add(const std::string& key, const Arrays& args, const std::string& name, std::shared_ptr<const void> made) {
  constexpr std::size_t many = 64;
  std::string types;
  append_types(types, args);
  const std::lock_guard lock(mutex_);
  if (!made_.emplace(key, std::move(made)).second) return;
  if (++programs_of_types_[types] <= many || has_warned_) return;
  has_warned_ = true;
  std::cerr << "reprise: warning: jit: " << name << " has been traced for more than " << many
            << " different static values with arguments of the same types, each becomes a program of its own; pass what changes "
               "from call to call as an Array\n";
}

}  // namespace reprise::detail
