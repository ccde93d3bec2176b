// Golden cases: what the real JAX prints and computes for small programs, read from JSON.
#pragma once

#include "test_data.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace golden {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;
using Json = nlohmann::json;

inline std::string read_file(const std::string& name) {
  std::ifstream in(golden_path(name));
  REQUIRE_MESSAGE(in.good(), "missing golden data " << name);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline const Json& case_named(const std::string& name) {
  static const Json all = Json::parse(read_file("remat_cases.json"));
  for (const Json& c : all["cases"]) {
    if (c["name"] == name) return c;
  }
  FAIL("no golden case " << name);
  return all;
}

inline rp::Dtype dtype_named(const std::string& name) {
  for (int d = 0; d <= static_cast<int>(rp::Dtype::f64); ++d) {
    if (rp::long_name(static_cast<rp::Dtype>(d)) == name) return static_cast<rp::Dtype>(d);
  }
  FAIL("no dtype " << name);
  return rp::float32;
}

inline Array array_of(const Json& j) {
  std::vector<double> values;
  for (const Json& v : j["data"])
    values.push_back(v.is_boolean() ? v.get<bool>() : v.get<double>());
  const Array a = rp::array(values, j["shape"].get<rp::Shape>());
  return rp::lax::convert_element_type(a, dtype_named(j["dtype"]));
}

// The leaves of argument i.
inline Arrays arg(const Json& c, std::size_t i) {
  Arrays leaves;
  for (const Json& leaf : c["args"][i]) leaves.push_back(array_of(leaf));
  return leaves;
}

// |ours - JAX| <= 1e-6 x the largest magnitude in the array (f64: 1e-12); returns the worst ratio
// to that.
inline double worst_ratio(const Array& ours, const Json& theirs) {
  const std::vector<double> got = ours.to_vector<double>();
  const Array wanted_array = array_of(theirs);
  const std::vector<double> wanted = wanted_array.to_vector<double>();
  REQUIRE(ours.shape() == wanted_array.shape());
  CHECK(ours.dtype() == wanted_array.dtype());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
  }
  const double tolerance = (ours.dtype() == rp::float64 ? 1e-12 : 1e-6) * std::max(largest, 1e-30);
  return difference / tolerance;
}

inline void check_values(const char* what, const Arrays& ours, const Json& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double ratio = worst_ratio(ours[i], theirs[i]);
    CHECK_MESSAGE(ratio <= 1.0, what << " " << i << ": worst ratio to the tolerance " << ratio);
  }
}

// The leaves of all gradients in the JSON, flattened.
inline Json flat(const Json& grads) {
  Json out = Json::array();
  for (const Json& g : grads) {
    if (g.is_array()) {
      for (const Json& leaf : g) out.push_back(leaf);
    } else {
      out.push_back(g);
    }
  }
  return out;
}

// Types of the residual lines of a case: "f32[5,4] from ..." -> "f32[5,4]", sorted.
inline std::vector<std::string> residual_types(const Json& c) {
  std::vector<std::string> types;
  for (const std::string line : c["residuals"]) types.push_back(line.substr(0, line.find(' ')));
  std::sort(types.begin(), types.end());
  return types;
}

struct ValuesAndGradients {
  Arrays out, grads;  // leaves
  REPRISE_FIELDS(out, grads)
};
// Gradients of the weighted sum: pull back (1 + 0.1 k) ones per output, the same number by
// linearity.
template <class F, class... A>
ValuesAndGradients values_and_gradients(const F& f, const std::vector<std::size_t>& argnums,
                                        const A&... args) {
  const auto [out, backward] = rp::vjp(f, args...);
  ValuesAndGradients result{rp::tree_leaves(out), {}};
  Arrays cts;
  for (std::size_t k = 0; k < result.out.size(); ++k) {
    cts.push_back(rp::full_like(result.out[k], 1 + 0.1 * static_cast<double>(k)));
  }
  std::size_t index = 0;
  const auto add = [&](const auto& g) {
    if (std::find(argnums.begin(), argnums.end(), index++) != argnums.end())
      rp::tree::flatten(g, result.grads);
  };
  std::apply([&](const auto&... g) { (add(g), ...); }, backward(rp::tree_unflatten(out, cts)));
  return result;
}

// Checks one case: texts where they are exact, values, gradients and residual types everywhere.
template <class F, class... A>
void check_case(const std::string& name, const F& f, const A&... args) {
  const Json& c = case_named(name);
  INFO("case " << name);
  const rp::FwdBwd programs = rp::fwd_bwd(f, args...);
  if (c["exact_text"].get<bool>()) {
    CHECK(rp::make_jaxpr(f)(args...).str() == c["jaxpr"].get<std::string>());
    CHECK(programs.forward.str() == c["fwd"].get<std::string>());
    CHECK(programs.backward.str() == c["bwd"].get<std::string>());
  }
  const auto argnums = c["grad_argnums"].get<std::vector<std::size_t>>();
  const auto check = [&](const std::string& how, const ValuesAndGradients& ours) {
    INFO(how);
    check_values("output", ours.out, c["out"]);
    check_values("gradient", ours.grads, flat(c["grads"]));
  };
  const ValuesAndGradients eager = values_and_gradients(f, argnums, args...);
  check("evaluated", eager);
  std::vector<std::string> types;
  const std::vector<rp::Type> forward_out = programs.forward.out_types();
  for (std::size_t i = eager.out.size(); i < forward_out.size(); ++i)
    types.push_back(rp::to_string(forward_out[i]));
  std::sort(types.begin(), types.end());
  CHECK(types == residual_types(c));
  const auto step = [&](const A&... x) { return values_and_gradients(f, argnums, x...); };
  check("compiled", rp::jit(step)(args...));
  for (const char* pass : optional_passes) {
    const WithoutPass without(pass);
    check(std::string("compiled without ") + pass, rp::jit(step)(args...));
  }
}

}  // namespace golden
