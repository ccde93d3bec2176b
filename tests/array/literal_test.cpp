#include "array/literal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace reprise;

namespace {

Literal round_trip(const Literal& l) {
  std::byte element[8] = {};
  store_literal(l, element);
  return load_literal(l.dtype, element);
}

}  // namespace

TEST_CASE("literals print as Python prints their value") {
  CHECK(to_string(make_literal(float32, 2)) == "2.0");
  CHECK(to_string(make_literal(float32, 1e-5, true)) == "1e-05");
  CHECK(to_string(make_literal(int32, -3)) == "-3");
  CHECK(to_string(make_literal(uint8, 200)) == "200");
  CHECK(to_string(make_literal(bool_, 1)) == "True");
  CHECK(to_string(make_literal(bool_, 0)) == "False");
  CHECK(to_string(make_literal(float32, -INFINITY)) == "-inf");
  Literal zero;
  zero.dtype = float0;
  CHECK(to_string(zero) == "(b'',)");
}

TEST_CASE("a strong literal is rounded to its dtype, a weak one keeps the number") {
  CHECK(to_string(make_literal(float32, 0.1)) == "0.10000000149011612");
  CHECK(to_string(make_literal(float32, 0.1, true)) == "0.1");
  CHECK(to_string(make_literal(float16, 0.1)) == "0.0999755859375");
  CHECK(to_string(make_literal(bfloat16, 0.1)) == "0.10009765625");
  CHECK(to_string(make_literal(float64, 0.1)) == "0.1");
}

TEST_CASE("a literal is a scalar of its dtype") {
  const Literal l = make_literal(float32, 2, true);
  CHECK(l.type() == Type{float32, {}, true});
}

TEST_CASE("stored literals are rounded to the dtype") {
  CHECK(round_trip(make_literal(float32, 0.1, true)).real == static_cast<double>(0.1f));
  CHECK(round_trip(make_literal(int8, -5)).integer == -5);
  CHECK(round_trip(make_literal(bool_, 1)).integer == 1);
  Literal big;
  big.dtype = uint64;
  big.natural = std::numeric_limits<std::uint64_t>::max();
  CHECK(round_trip(big).natural == big.natural);
  CHECK(to_string(big) == "18446744073709551615");
}

TEST_CASE("numbers out of range saturate") {
  CHECK(make_literal(int8, 300).integer == 127);
  CHECK(make_literal(uint8, -1).natural == 0);
  CHECK(make_literal(int32, NAN).integer == 0);
}

TEST_CASE("literals convert between dtypes") {
  CHECK(to_string(convert_literal(make_literal(int32, 3), float32, false)) == "3.0");
  CHECK(to_string(convert_literal(make_literal(float32, 2.9), int32, false)) == "2");
  CHECK(to_string(convert_literal(make_literal(bool_, 1), float32, true)) == "1.0");
  CHECK(to_string(convert_literal(make_literal(uint8, 7), float64, false)) == "7.0");
  CHECK(convert_literal(make_literal(int32, 3), int32, true).weak_type);
}

TEST_CASE("64-bit integers convert without going through double") {
  Literal big;
  big.dtype = int64;
  big.integer = (std::int64_t{1} << 62) + 1;
  CHECK(convert_literal(big, uint64, false).natural == (std::uint64_t{1} << 62) + 1);
}

TEST_CASE("equal literals agree in value, dtype, weakness and origin") {
  const Literal a = make_literal(float32, 2);
  CHECK(a == make_literal(float32, 2));
  CHECK_FALSE(a == make_literal(float32, 3));
  CHECK_FALSE(a == make_literal(float32, 2, true));
  CHECK_FALSE(a == make_literal(float64, 2));
  CHECK(make_literal(float32, NAN) == make_literal(float32, NAN));
}
