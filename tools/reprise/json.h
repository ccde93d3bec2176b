// JSON answers: members stay in the order in which they are written.
#pragma once

#include <nlohmann/json.hpp>

#include <ostream>

namespace reprise::cli {

using Json = nlohmann::ordered_json;

// Names in a program are any bytes; those that are not UTF-8 are replaced.
inline void write_json(const Json& json, std::ostream& out) {
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace reprise::cli
