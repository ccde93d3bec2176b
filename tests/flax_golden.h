// Golden data of Flax, optax and jax.random: arrays with the bits that the real libraries computed.
#pragma once

#include "test_data.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace flax_golden {

using Json = nlohmann::json;
using reprise::Array;

inline const Json& file(const std::string& name) {
  static std::map<std::string, Json> read;
  const auto known = read.find(name);
  if (known != read.end()) return known->second;
  std::ifstream in(golden_path(name));
  REQUIRE_MESSAGE(in.good(), "missing golden data " << name);
  return read[name] = Json::parse(in);
}
// A section of flax_cases.json.
inline const Json& section(const std::string& name) {
  const Json& all = file("flax_cases.json");
  REQUIRE_MESSAGE(all.contains(name), "no golden section " << name);
  return all[name];
}

inline reprise::Dtype dtype_named(const std::string& name) {
  for (int d = 0; d <= static_cast<int>(reprise::Dtype::f64); ++d) {
    if (reprise::long_name(static_cast<reprise::Dtype>(d)) == name)
      return static_cast<reprise::Dtype>(d);
  }
  FAIL("no dtype " << name);
  return reprise::float32;
}

// From bits where they are given, else from the numbers; null is NaN.
inline Array array_of(const Json& j) {
  const auto shape = j["shape"].get<reprise::Shape>();
  std::vector<double> values;
  if (j.contains("bits") && j["dtype"] == "float32") {
    for (const std::string bits : j["bits"]) {
      values.push_back(
          std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(bits, nullptr, 16))));
    }
  } else {
    for (const Json& v : j["values"]) values.push_back(v.is_null() ? NAN : v.get<double>());
  }
  return reprise::array(values, shape).astype(dtype_named(j["dtype"]));
}

// A nested dictionary of arrays, such as the variables of a Linen module.
inline reprise::Dict dict_of(const Json& j) {
  reprise::Dict out;
  for (const auto& [key, value] : j.items()) {
    if (value.contains("bits") || value.contains("values")) {
      out[key] = array_of(value);
    } else {
      out[key] = dict_of(value);
    }
  }
  return out;
}

// Equal to the last bit; zeros of either sign differ.
inline void same_bits(const Array& ours, const Json& theirs) {
  const Array wanted = array_of(theirs);
  REQUIRE(ours.type() == wanted.type());
  const auto a = ours.to_vector<float>(), b = wanted.to_vector<float>();
  std::size_t different = 0, first = a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (different++ == 0) first = i;
  }
  CHECK_MESSAGE(different == 0, different << " of " << a.size() << " elements differ, first ["
                                          << first << "]: " << a[first] << " wanted " << b[first]);
}

// |ours - theirs| <= tolerance x the largest magnitude in the array.
inline void near(const Array& ours, const Json& theirs, double tolerance = 1e-6) {
  const Array wanted = array_of(theirs);
  REQUIRE(ours.type() == wanted.type());
  const auto a = ours.to_vector<double>(), b = wanted.to_vector<double>();
  double largest = 1e-30, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, a[i] == b[i] ? 0.0 : std::abs(a[i] - b[i]));
    if (std::isnan(a[i]) != std::isnan(b[i])) difference = INFINITY;
  }
  CHECK_MESSAGE(difference <= tolerance * largest,
                "difference " << difference << ", largest magnitude " << largest);
}

}  // namespace flax_golden
