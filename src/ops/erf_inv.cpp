#include "ops/erf_inv.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reprise {
namespace {

using namespace erf_inv_f32;  // NOLINT: the numbers of the formulas

constexpr float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }

template <class T, std::size_t N>
T polynomial(T x, const T (&c)[N]) {
  T p = c[0];
  for (std::size_t i = 1; i < N; ++i) p = std::fma(p, x, c[i]);
  return p;
}
template <std::size_t N>
float polynomial(float x, const std::uint32_t (&c)[N]) {
  float p = number(c[0]);
  for (std::size_t i = 1; i < N; ++i) p = std::fma(p, x, number(c[i]));
  return p;
}

// Natural logarithm of a positive normal number.
float log_of_normal(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float e = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127) + 1.0f;
  const float m = number((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  const bool low = m < number(sqrt_half);
  if (low) e -= 1.0f;
  const float z = low ? (m - 1.0f) + m : m - 1.0f;
  const float z2 = z * z, z3 = z2 * z;
  const float p1 = std::fma(polynomial(z, log_p0), z3, polynomial(z, log_p1));
  const float p2 = std::fma(p1, z3, polynomial(z, log_p2));
  const float q = std::fma(z3, p2, e * number(ln2_low));
  const float w = std::fma(z2, -0.5f, z);
  return std::fma(e, number(ln2_high), w + q);
}

// log(1 + x) for x in (-1, 0].
float log_of_one_plus(float x) {
  if (!(std::fabs(x) < number(small))) return log_of_normal(x + 1.0f);
  const float x2 = x * x;
  const float y = (x * x2) * (polynomial(x, log1p_num) / polynomial(x, log1p_den));
  return x + std::fma(x2, -0.5f, y);
}

}  // namespace

float inverse_erf(float x) {
  if (!(std::fabs(x) < 1.0f)) {
    if (std::fabs(x) == 1.0f) return std::copysign(std::numeric_limits<float>::infinity(), x);
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float log_1_x2 = log_of_one_plus(x * -x);
  const float w = -log_1_x2;
  if (w < 5.0f) return x * polynomial(-2.5f - log_1_x2, central);
  return x * polynomial(std::sqrt(w) - 3.0f, tail);
}

double inverse_erf(double x) {
  if (!(std::fabs(x) < 1.0)) {
    if (std::fabs(x) == 1.0) return std::copysign(std::numeric_limits<double>::infinity(), x);
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double w = -std::log1p(x * -x);
  if (w < 6.25) {
    return x *
           polynomial(
               w - 3.125,
               {-3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
                1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
                6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
                2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
                1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
                4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
                0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
                0.24015818242558961693,     1.6536545626831027356});
  }
  if (w < 16.0) {
    return x *
           polynomial(
               std::sqrt(w) - 3.25,
               {2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
                1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
                2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
                6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
                0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
                -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334,
                3.0838856104922207635});
  }
  return x * polynomial(
                 std::sqrt(w) - 5.0,
                 {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                  -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
                  2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                  -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
                  7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
                  1.0103004648645343977, 4.8499064014085844221});
}

}  // namespace reprise
