#include "array/number_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace reprise;

namespace {

template <class T>
std::string positional(T v, int max_fraction = 8) {
  const NumberParts p = positional_parts(v, max_fraction);
  return p.whole + "." + p.fraction + p.exponent;
}
template <class T>
std::string scientific(T v, int min_fraction, int max_fraction) {
  const NumberParts p = scientific_parts(v, min_fraction, max_fraction);
  return p.whole + "." + p.fraction + p.exponent;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("python_float is the shortest text that reads back") {
  CHECK(python_float(0.1) == "0.1");
  CHECK(python_float(0.1f) == "0.10000000149011612");
  CHECK(python_float(1.0 / 3.0) == "0.3333333333333333");
  CHECK(python_float(1) == "1.0");
  CHECK(python_float(-2.5) == "-2.5");
  CHECK(python_float(123456.789) == "123456.789");
  CHECK(python_float(0) == "0.0");
  CHECK(python_float(-0.0) == "-0.0");
}

TEST_CASE("python_float has an exponent below 1e-4 and from 1e16") {
  CHECK(python_float(0.0001) == "0.0001");
  CHECK(python_float(0.00001) == "1e-05");
  CHECK(python_float(1.5e-7) == "1.5e-07");
  CHECK(python_float(1e15) == "1000000000000000.0");
  CHECK(python_float(9007199254740993.0) == "9007199254740992.0");
  CHECK(python_float(9999999999999998.0) == "9999999999999998.0");
  CHECK(python_float(1e16) == "1e+16");
  CHECK(python_float(1.2345e100) == "1.2345e+100");
  CHECK(python_float(std::numeric_limits<double>::max()) == "1.7976931348623157e+308");
  CHECK(python_float(std::numeric_limits<double>::denorm_min()) == "5e-324");
  CHECK(python_float(std::numeric_limits<float>::max()) == "3.4028234663852886e+38");
}

TEST_CASE("python_float writes infinity and nan in lower case") {
  CHECK(python_float(infinity) == "inf");
  CHECK(python_float(-infinity) == "-inf");
  CHECK(python_float(std::nan("")) == "nan");
  CHECK(python_float(-std::nan("")) == "nan");
}

TEST_CASE("a numpy scalar has the digits of its own type") {
  CHECK(numpy_scalar(0.1f) == "0.1");
  CHECK(numpy_scalar(Float16(0.1f)) == "0.1");
  CHECK(numpy_scalar(BFloat16(0.1f)) == "0.1");
  CHECK(numpy_scalar(3.3f) == "3.3");
  CHECK(numpy_scalar(0.1) == "0.1");
  CHECK(numpy_scalar(1.0f / 3.0f) == "0.33333334");
  CHECK(numpy_scalar(-0.0f) == "-0.0");
  CHECK(numpy_scalar(static_cast<float>(infinity)) == "inf");
}

TEST_CASE("large numbers of small types are scientific sooner") {
  CHECK(numpy_scalar(999999.0f) == "999999.0");
  CHECK(numpy_scalar(1e6f) == "1e+06");
  CHECK(numpy_scalar(12345678.0f) == "1.2345678e+07");
  CHECK(numpy_scalar(1e6) == "1000000.0");
  CHECK(numpy_scalar(1e16) == "1e+16");
  CHECK(numpy_scalar(Float16(999.0f)) == "999.0");
  CHECK(numpy_scalar(Float16(2047.0f)) == "2.047e+03");
  CHECK(numpy_scalar(1e-4f) == "1e-04");  // as a float it is below 1e-4
  CHECK(numpy_scalar(1e-4) == "0.0001");
}

TEST_CASE("the shortest half number may need a tie rounded up") {
  // 2^-6 == 0.015625; 0.01562 reads back as its lower neighbour.
  CHECK(numpy_scalar(Float16(0x1p-6f)) == "0.01563");
}

TEST_CASE("positional digits are limited after the point") {
  CHECK(positional(1.25) == "1.25");
  CHECK(positional(1.23456789012345) == "1.23456789");
  CHECK(positional(1.999999999) == "2.");
  CHECK(positional(100.0f) == "100.");
  CHECK(positional(-0.0f) == "-0.");
  CHECK(positional(0.5f, 0) == "0.");
  CHECK(positional(123456790000.0f) == "123456790000.");
}

TEST_CASE("scientific digits are limited and may be filled up with exact digits") {
  CHECK(scientific(1.5e10, 0, 8) == "1.5e+10");
  CHECK(scientific(1.23456789012345e-5, 0, 8) == "1.23456789e-05");
  CHECK(scientific(9.99999999999, 0, 8) == "1.e+01");
  CHECK(scientific(0.009235007f, 7, 7) == "9.2350068e-03");
  CHECK(scientific(2.0, 3, 3) == "2.000e+00");
}
