// Small text building: str(a, b, c) joins anything that streams.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace reprise {

template <class... T>
std::string str(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// join({1, 2}, ", ") == "1, 2"
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

}  // namespace reprise
