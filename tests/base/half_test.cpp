#include "base/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace reprise;

namespace {

template <class T>
T from_bits(unsigned bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}
template <class T>
float rounded(float v) {
  return static_cast<float>(T(v));
}

constexpr float infinity = std::numeric_limits<float>::infinity();

// Every half number survives the way to float and back; NaN stays NaN.
template <class T>
int count_changed() {
  int changed = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const T x = from_bits<T>(bits);
    const auto v = static_cast<float>(x);
    const T back(v);
    const bool same = std::isnan(v) ? std::isnan(static_cast<float>(back)) : back.bits == x.bits;
    if (!same) ++changed;
  }
  return changed;
}

// Between neighbours: below the middle rounds down, above it up, the middle to the even one.
template <class T>
int count_wrong_roundings(unsigned first_infinity) {
  int wrong = 0;
  for (unsigned bits = 0; bits + 1 < first_infinity; ++bits) {
    const auto low = static_cast<float>(from_bits<T>(bits));
    const auto high = static_cast<float>(from_bits<T>(bits + 1));
    const float middle = low + (high - low) / 2;
    if (T(std::nextafter(middle, 0.0f)).bits != bits) ++wrong;
    if (T(std::nextafter(middle, infinity)).bits != bits + 1) ++wrong;
    if (T(middle).bits != (bits % 2 == 0 ? bits : bits + 1)) ++wrong;
    if (T(-middle).bits != (0x8000u | (bits % 2 == 0 ? bits : bits + 1))) ++wrong;
  }
  return wrong;
}

}  // namespace

TEST_CASE("half numbers convert to float and back unchanged") {
  CHECK(count_changed<Float16>() == 0);
  CHECK(count_changed<BFloat16>() == 0);
}

TEST_CASE("float rounds to the nearest half number, ties to even") {
  CHECK(count_wrong_roundings<Float16>(0x7c00) == 0);
  CHECK(count_wrong_roundings<BFloat16>(0x7f80) == 0);
}

TEST_CASE("float16 knows its limits") {
  CHECK(rounded<Float16>(65504.0f) == 65504.0f);
  CHECK(rounded<Float16>(65519.0f) == 65504.0f);
  CHECK(rounded<Float16>(65520.0f) == infinity);
  CHECK(rounded<Float16>(-1e30f) == -infinity);
  CHECK(rounded<Float16>(0x1p-24f) == 0x1p-24f);
  CHECK(rounded<Float16>(0x1p-26f) == 0.0f);
  CHECK(rounded<Float16>(0.1f) == doctest::Approx(0.0999756f));
}

TEST_CASE("bfloat16 knows its limits") {
  CHECK(rounded<BFloat16>(std::numeric_limits<float>::max()) == infinity);
  CHECK(rounded<BFloat16>(3.3895314e38f) == 3.3895314e38f);
  CHECK(rounded<BFloat16>(0.1f) == 0.10009765625f);
}

TEST_CASE("half numbers keep signed zero, infinity and NaN") {
  CHECK(std::signbit(rounded<Float16>(-0.0f)));
  CHECK(std::signbit(rounded<BFloat16>(-0.0f)));
  CHECK(rounded<Float16>(-infinity) == -infinity);
  CHECK(rounded<BFloat16>(infinity) == infinity);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(rounded<Float16>(nan)));
  CHECK(std::isnan(rounded<BFloat16>(nan)));
}
