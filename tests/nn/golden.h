// What the real Flax computes, read from JSON, and comparisons to the bit and to the tolerance.
#pragma once

#include "test_data.h"
#include <reprise/nn.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

namespace flax {

namespace rp = reprise;
using Json = nlohmann::json;

inline Json read_json(const std::string& file) {
  std::ifstream in(golden_path(file));
  REQUIRE(in.good());
  return Json::parse(in);
}
inline const Json& cases(const std::string& name) {
  static const Json all = read_json("flax_cases.json");
  return all.at(name);
}
// More models, made with the same Flax; the tests say which.
inline const Json& more(const std::string& name) {
  static const Json all = read_json("linen_cases.json");
  return all.at(name);
}

// The input of all of these: 1.7 sin(1.3 i + 0.5).
inline rp::Array wave(const rp::Shape& shape) {
  std::vector<float> values;
  std::int64_t size = 1;
  for (const std::int64_t n : shape) size *= n;
  for (std::int64_t i = 0; i < size; ++i)
    values.push_back(static_cast<float>(1.7 * std::sin(1.3 * static_cast<double>(i) + 0.5)));
  return rp::array(values, shape);
}

inline bool is_array(const Json& j) {
  return j.is_object() && j.contains("dtype") && j.contains("shape");
}

inline rp::Array array_of(const Json& j) {
  const auto shape = j.at("shape").get<rp::Shape>();
  if (j.at("dtype") == "int32")
    return rp::array(j.at("values").get<std::vector<std::int32_t>>(), shape);
  std::vector<float> values;
  for (const Json& bits : j.at("bits")) {
    values.push_back(std::bit_cast<float>(
        static_cast<std::uint32_t>(std::stoul(bits.get<std::string>(), nullptr, 16))));
  }
  const rp::Array array = rp::array(values, shape);
  return j.at("dtype") == "bfloat16" ? array.astype(rp::bfloat16) : array;
}

inline rp::Dict dict_of(const Json& j) {
  rp::Dict result;
  for (const auto& [key, value] : j.items()) {
    if (is_array(value)) {
      result[key] = array_of(value);
    } else {
      result[key] = dict_of(value);
    }
  }
  return result;
}

inline std::int64_t ordered(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7FFFFFFF) : bits;
}

// The largest distance in units in the last place.
inline std::int64_t worst_ulp(const rp::Array& ours, const rp::Array& theirs) {
  REQUIRE(ours.shape() == theirs.shape());
  CHECK(ours.dtype() == theirs.dtype());
  const auto a = ours.to_vector<float>(), b = theirs.to_vector<float>();
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(ordered(a[i]) - ordered(b[i])));
  return worst;
}

// |ours - Flax| <= 1e-6 x the largest magnitude in the array: the worst ratio to that.
inline double worst_ratio(const rp::Array& ours, const rp::Array& theirs) {
  REQUIRE(ours.shape() == theirs.shape());
  const auto a = ours.to_vector<double>(), b = theirs.to_vector<double>();
  CHECK(ours.dtype() == theirs.dtype());
  double largest = 1e-30, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    largest = std::max(largest, std::abs(b[i]));
    difference = std::isnan(a[i]) || std::isnan(b[i]) ? INFINITY
                                                      : std::max(difference, std::abs(a[i] - b[i]));
  }
  const double unit = ours.dtype() == rp::bfloat16 ? 8e-3 : 1e-6;
  return difference / (unit * largest);
}

inline void check_bits(const rp::Dict& ours, const rp::Dict& theirs) {
  CHECK(rp::tree_paths(ours) == rp::tree_paths(theirs));
  const rp::Arrays a = rp::tree_leaves(ours), b = rp::tree_leaves(theirs);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK_MESSAGE(worst_ulp(a[i], b[i]) == 0, rp::tree_paths(ours)[i]);
  }
}

inline void check_close(const rp::Array& ours, const rp::Array& theirs) {
  const double ratio = worst_ratio(ours, theirs);
  CHECK_MESSAGE(ratio <= 1.0, "worst ratio to the tolerance " << ratio);
}
inline void check_close(const rp::Dict& ours, const rp::Dict& theirs) {
  CHECK(rp::tree_paths(ours) == rp::tree_paths(theirs));
  const rp::Arrays a = rp::tree_leaves(ours), b = rp::tree_leaves(theirs);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(rp::tree_paths(ours)[i]);
    check_close(a[i], b[i]);
  }
}
// The leaves of a result against those of Flax's.
template <class T>
void check_result(const T& ours, const Json& theirs) {
  const rp::Arrays a = rp::tree_leaves(ours);
  REQUIRE(a.size() == theirs.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    check_close(a[i], array_of(theirs.at(std::to_string(i))));
}

struct CaseOptions {
  int seed = 0;
  rp::nn::Rngs rngs = {};  // beside that of params at init
  rp::nn::Filter changes = false;
};
// init gives the variables of the case to the bit, apply its results.
template <auto method = nullptr, class Model, class... A>
void check_model(const std::string& name, const Model& model, const CaseOptions& options,
                 const A&... args) {
  CAPTURE(name);
  const Json& c = more(name);
  std::map<std::string, rp::Array> keys = options.rngs.keys();
  keys.try_emplace("params", rp::random::PRNGKey(options.seed));
  const rp::Dict variables = model.template init<method>(rp::nn::Rngs(keys), args...);
  check_bits(variables, dict_of(c.at("variables")));
  const rp::nn::ApplyOptions apply = {.rngs = options.rngs};
  if (c.contains("changed")) {
    const auto [out, changed] =
        model.template apply<method>(variables, rp::nn::mutable_(options.changes, apply), args...);
    check_result(out, c.at("out"));
    check_close(changed, dict_of(c.at("changed")));
  } else {
    check_result(model.template apply<method>(variables, apply, args...), c.at("out"));
  }
}
// And the gradients of sum(first result ** 2).
template <class Model, class... A>
void check_gradients(const std::string& name, const Model& model, const CaseOptions& options,
                     const rp::Array& x, const A&... args) {
  CAPTURE(name);
  const Json& c = more(name);
  const auto loss = [&](rp::Dict v, rp::Array at) {
    const rp::Array y = rp::tree_leaves(model.apply(v, {.rngs = options.rngs}, at, args...))[0];
    return rp::sum(rp::square(y));
  };
  const rp::Dict variables = dict_of(c.at("variables"));
  const auto [dv, dx] = rp::grad<0, 1>(loss)(variables, x);
  check_close(dv.dict("params"), dict_of(c.at("grad_params")));
  check_close(dx, array_of(c.at("grad_x")));
}

}  // namespace flax
