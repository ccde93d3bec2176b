// Products of a vector and a matrix against JAX, bit for bit. The data is made by
// tests/golden/vector_dots.py.
#include "test_data.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <fstream>

namespace rp = reprise;
using rp::Array;

namespace {

Array numbers(double seed, const rp::Shape& shape) {
  std::int64_t size = 1;
  for (std::int64_t n : shape) size *= n;
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(1.7 * std::sin(1.3 * static_cast<double>(i) + seed)));
  }
  return rp::array(values, shape);
}
std::vector<float> from_bits(const nlohmann::json& list) {
  std::vector<float> values;
  for (const auto& text : list) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(text.get<std::string>(), nullptr, 16));
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  return values;
}

}  // namespace

TEST_CASE("a vector times a matrix, and its gradient, have the bits of JAX") {
  std::ifstream file(golden_path("vector_dots.json"));
  for (const auto& c : nlohmann::json::parse(file)) {
    const std::int64_t rows = c.at("rows"), columns = c.at("columns");
    CAPTURE(rows);
    CAPTURE(columns);
    const Array x = numbers(0.5, {rows}), w = numbers(0.25, {rows, columns}),
                g = numbers(0.75, {columns});
    const auto product = [](Array a, Array b) {
      return rp::lax::dot_general(a, b, {.lhs_contracting = {0}, .rhs_contracting = {0}});
    };
    const auto [y, backward] = rp::vjp(product, x, w);
    CHECK(y.to_vector<float>() == from_bits(c.at("product")));
    CHECK(std::get<0>(backward(g)).to_vector<float>() == from_bits(c.at("gradient")));
    // The matrix on the left, and a batch of one.
    CHECK(rp::dot(rp::transpose(w), x).shape() == rp::Shape{columns});
    CHECK(rp::dot(x.reshape({1, rows}), w).to_vector<float>() == from_bits(c.at("product")));
  }
}
