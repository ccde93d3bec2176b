#include "ops/tanh.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise {
namespace {

template <std::size_t N>
float even_polynomial(float x, const std::uint32_t (&c)[N]) {
  float p = std::bit_cast<float>(c[0]);
  for (std::size_t i = 1; i < N; ++i) p = std::fma(p, x, std::bit_cast<float>(c[i]));
  return p;
}

}  // namespace

float xla_tanh(float x) {
  const float size = std::fabs(x);
  if (size < tanh_f32::small) return x;
  if (size >= tanh_f32::large) return std::copysign(1.0f, x);
  const float limit = std::bit_cast<float>(tanh_f32::clamp);
  const float inside = std::clamp(x, -limit, limit);  // NaN stays
  const float square = inside * inside;
  return inside * even_polynomial(square, tanh_f32::num) / even_polynomial(square, tanh_f32::den);
}

double xla_tanh(double x) { return std::tanh(x); }

}  // namespace reprise
