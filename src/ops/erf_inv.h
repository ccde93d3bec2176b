// The inverse of the error function with the polynomials that XLA evaluates, so that random normal
// values equal JAX's bit for bit.
#pragma once

#include <cstdint>

namespace reprise {

float inverse_erf(float x);    // the same bits as XLA on CPU
double inverse_erf(double x);  // Giles' three-branch approximation

// The f32 code in parts, as bits of numbers, for those who compute it for many numbers at once. A
// polynomial's highest coefficient comes first, one fused multiply-add per step.
namespace erf_inv_f32 {

// log(x) = z + z^3 (p2 + z^3 (p1 + z^3 p0)) ..., z near 0: three polynomials in z.
inline constexpr std::uint32_t log_p0[] = {0x3d9021bb, 0xbdebd1b8, 0x3def251a};
inline constexpr std::uint32_t log_p1[] = {0xbdfe5d4f, 0x3e11e9bf, 0xbe2aae50};
inline constexpr std::uint32_t log_p2[] = {0x3e4cceac, 0xbe7ffffc, 0x3eaaaaaa};
inline constexpr std::uint32_t sqrt_half = 0x3f3504f3;
inline constexpr std::uint32_t ln2_high = 0x3f318000, ln2_low = 0xb95e8083;  // they add up to ln 2

// log(1 + x) for small |x|: a quotient of polynomials in x.
inline constexpr std::uint32_t small = 0x3ed413cd;
inline constexpr std::uint32_t log1p_num[] = {0x383de05f, 0x3eff40c5, 0x40d284fa, 0x41ef4b9c,
                                              0x4273cc76, 0x426473ad, 0x41a05101};
inline constexpr std::uint32_t log1p_den[] = {0x3f800000, 0x417101ad, 0x42a6185b, 0x435dc32d,
                                              0x439a8ca3, 0x43586d8a, 0x42707982};

// The result over x, by w = -log(1 - x^2): in w - 2.5 below 5, else in sqrt(w) - 3.
inline constexpr std::uint32_t central[] = {0x32f16588, 0x34b84b36, 0xb66c7357,
                                            0xb6935ac1, 0x396532db, 0xbaa45408,
                                            0xbb88e4ef, 0x3e7c8f63, 0x3fc02e2f};
inline constexpr std::uint32_t tail[] = {0xb951f09b, 0x38d3b56b, 0x3ab0dc72, 0xbb70bde7, 0x3bbc127b,
                                         0xbbf9c5d7, 0x3c1aa57e, 0x3f8036db, 0x40354f7e};

}  // namespace erf_inv_f32
}  // namespace reprise
