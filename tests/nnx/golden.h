// Arrays of tests/golden/flax_cases.json, which Flax made.
#pragma once

#include "reprise/array.h"
#include "test_data.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace golden {

inline const nlohmann::json& flax() {
  static const nlohmann::json cases = [] {
    std::ifstream file(golden_path("flax_cases.json"));
    return nlohmann::json::parse(file);
  }();
  return cases;
}

inline std::vector<float> values(const nlohmann::json& j) {
  std::vector<float> out;
  for (const auto& text : j.at("bits")) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(text.get<std::string>(), nullptr, 16));
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    out.push_back(value);
  }
  return out;
}
inline reprise::Array array(const nlohmann::json& j) {
  return reprise::array(values(j), j.at("shape").get<reprise::Shape>());
}

// The largest distance in units of the last place; 0 and -0 are equal.
inline long worst_ulp(const reprise::Array& got, const nlohmann::json& j) {
  auto ordered = [](float x) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? static_cast<long>(INT32_MIN) - bits : static_cast<long>(bits);
  };
  const std::vector<float> a = got.to_vector<float>(), b = values(j);
  if (a.size() != b.size()) return -1;
  long worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(ordered(a[i]) - ordered(b[i])));
  return worst;
}
// The largest difference as a part of the largest magnitude.
inline double worst_ratio(const reprise::Array& got, const nlohmann::json& j) {
  const std::vector<float> a = got.to_vector<float>(), b = values(j);
  if (a.size() != b.size()) return 1e30;
  double largest = 1e-30, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

}  // namespace golden
