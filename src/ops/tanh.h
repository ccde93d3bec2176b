// tanh with the quotient of polynomials that XLA evaluates, so that values equal JAX's bit for bit
// and are the same on every machine.
#pragma once

#include <cstdint>

namespace reprise {

float xla_tanh(float x);    // the same bits as XLA on CPU; 4.6 ulp
double xla_tanh(double x);  // libm's

// The f32 code in parts, as bits of numbers, for those who compute it for many numbers at once:
//
//   x num(x^2) / den(x^2)   |x| at most `clamp`; x itself below `small`, 1 from `large` on
//
// A polynomial's highest coefficient comes first, one fused multiply-add per step.
namespace tanh_f32 {

inline constexpr std::uint32_t num[] = {0xa59f25c0, 0x2a61337e, 0xaebd37ff, 0x335c0041,
                                        0x3779434a, 0x3a270ded, 0x3ba059dc};
inline constexpr std::uint32_t den[] = {0x35a0d3d8, 0x38f895d6, 0x3b14aa05, 0x3ba059dd};
inline constexpr std::uint32_t clamp = 0x40fff644;
inline constexpr float small = 0.0004f, large = 20.0f;

}  // namespace tanh_f32
}  // namespace reprise
