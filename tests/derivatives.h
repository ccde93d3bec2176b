// Texts of transformed functions, and numbers to compare derivatives with.
#pragma once

#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace check {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

template <class F, class... A>
std::string text(const F& f, const A&... args) {
  return rp::make_jaxpr(f)(args...).str();
}

// (arguments, tangents) -> (results, tangents of the results)
template <class F, class... A>
std::string jvp_text(const F& f, const A&... args) {
  constexpr std::size_t n = sizeof...(A);
  auto both = [&]<std::size_t... I>(const Arrays& x, std::index_sequence<I...>) {
    return rp::jvp(f, std::tuple{x[I]...}, std::tuple{x[n + I]...});
  };
  return rp::make_jaxpr([&](Arrays x) { return both(x, std::make_index_sequence<n>{}); })(
             Arrays{args..., args...})
      .str();
}

// arguments -> (results, residuals)
template <class F, class... A>
std::string forward_text(const F& f, const A&... args) {
  auto run = [&]<std::size_t... I>(const Arrays& x, std::index_sequence<I...>) {
    const auto [out, backward] = rp::vjp(f, x[I]...);
    Arrays all = rp::tree_leaves(out);
    for (const rp::Residual& r : backward.residuals()) all.push_back(r.value);
    return all;
  };
  return rp::make_jaxpr([&](Arrays x) { return run(x, std::index_sequence_for<A...>{}); })(
             Arrays{args...})
      .str();
}

inline std::vector<double> numbers(const Array& x) { return x.to_vector<double>(); }

inline void check_close(const Array& got, const Array& wanted, double tolerance = 1e-5) {
  REQUIRE(got.shape() == wanted.shape());
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i] == doctest::Approx(b[i]).epsilon(tolerance).scale(1));
  }
}

// The gradient of a scalar function by central differences, in double.
template <class F>
Array numeric_grad(const F& f, const Array& x, double step = 1e-5) {
  const std::vector<double> at = numbers(x);
  std::vector<double> slope(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto value = [&](double delta) {
      std::vector<double> moved = at;
      moved[i] += delta;
      return f(rp::array(moved, x.shape())).template item<double>();
    };
    slope[i] = (value(step) - value(-step)) / (2 * step);
  }
  return rp::array(slope, x.shape());
}

inline Array doubles(std::initializer_list<double> values) {
  return rp::array(std::vector<double>(values));
}

}  // namespace check
