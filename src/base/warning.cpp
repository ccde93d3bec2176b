#include "base/warning.h"

#include "base/location.h"

#include <iostream>
#include <mutex>
#include <set>

namespace reprise {

void warn(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;  // both outlive whoever computes at exit
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::string whole = error_text("reprise: warning: " + text, user_location(), "");
  const std::lock_guard lock(mutex);
  if (said.insert(whole).second) std::cerr << whole << "\n";
}

}  // namespace reprise
