#include "ops/lax.h"
#include "ops/records.h"
#include "ops/rules_check.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

TEST_CASE("conversion to integers truncates, saturates and takes NaN as zero") {
  const Array x = array({1.9, -1.9, 1e30, -1e30, inf, -inf, nan, -0.0});
  check_numbers(x.astype(int32), {1, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0, 0});
  check_numbers(x.astype(uint8), {1, 0, 255, 0, 255, 0, 0, 0});
  check_numbers(x.astype(int8), {1, -1, 127, -128, 127, -128, 0, 0});
  check_numbers(x.astype(bool_), {1, 1, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("conversion between integers keeps the low bits") {
  check_numbers(array({300, -1, 128}).astype(uint8), {44, 255, 128});
  check_numbers(array({300, -1, 128}).astype(int8), {44, -1, -128});
}

TEST_CASE("conversion to halves rounds to the nearest even") {
  const Array x = array({1 + 0x1p-11, 1 + 3 * 0x1p-11, 65520.0, 65519.0, 1e-8, nan});
  check_numbers(x.astype(float16), {1, 1 + 0x1p-9, inf, 65504, 0.0, nan});
  check_numbers(array({1 + 0x1p-8, 1 + 3 * 0x1p-8}).astype(bfloat16), {1, 1 + 0x1p-6});
}

TEST_CASE("a conversion that changes nothing is the array itself") {
  const Array x = array({1.0, 2.0});
  CHECK(ArrayAccess::identity(x.astype(float32)) == ArrayAccess::identity(x));
  CHECK(lax::convert(x, float32, true).weak_type());
  CHECK_THROWS_AS(lax::convert_element_type(x, float0), TypeError);
}

TEST_CASE("a converted number stays a literal while tracing and is an array otherwise") {
  CHECK(content(lax::convert_element_type(2, float32)).number() == nullptr);
  const auto f = [](const Arrays& a) {
    const Array in_rule = lax::convert(2, float32);
    CHECK(content(in_rule).number() != nullptr);
    CHECK_FALSE(content(in_rule).number()->promoted);
    const Array by_user = lax::convert_element_type(2, float32);
    CHECK(content(by_user).number()->promoted);
    return a;
  };
  const Traced t = trace(f, {Type{float32, {}}});
  CHECK(t.program->eqns.empty());
}

TEST_CASE("conversion differentiates between floating dtypes only") {
  const auto there_and_back = [](const Arrays& a) {
    const Array x = lax::mul(a[0], a[0]);
    return Arrays{lax::convert(lax::convert(x, float32), float64)};
  };
  const Traced t = trace(there_and_back, {Type{float64, {2}}});
  const Array x = array(std::vector<double>{1.5, -2});
  check_numbers(*jvp(*t.program, {x}, {x}).tangents[0], {4.5, 8});
  const Traced whole =
      trace([](const Arrays& a) { return Arrays{a[0].astype(int32)}; }, {x.type()});
  CHECK_FALSE(jvp(*whole.program, {x}, {x}).tangents[0].has_value());
}

TEST_CASE("bitcast_convert_type keeps the bits and changes the last dimension by the width") {
  check_numbers(lax::bitcast_convert_type(array({1.0, -0.0}), int32), {0x3f800000, INT32_MIN});
  const Array halves = lax::bitcast_convert_type(array({1.0}), uint16);
  CHECK(halves.shape() == Shape{1, 2});
  check_numbers(halves, {0, 0x3f80});
  check_numbers(lax::bitcast_convert_type(halves, float32), {1});
  const Array scalar = lax::bitcast_convert_type(array(std::vector<double>{1}, Shape{}), uint32);
  check_numbers(scalar, {0, 0x3ff00000});
  CHECK(lax::bitcast_convert_type(scalar, float64).shape().empty());
  CHECK_THROWS_AS(lax::bitcast_convert_type(array({1.0}), float64), TypeError);
  CHECK_THROWS_AS(lax::bitcast_convert_type(array({true}), uint8), TypeError);
  const auto widen = [](const Arrays& a) {
    return Arrays{lax::bitcast_convert_type(a[0], float32)};
  };
  check_batching(widen, {lax::bitcast_convert_type(array({1.0, 2.0, 3.0}), uint16)}, {true});
}

TEST_CASE("reduce_precision rounds to nearest even, overflows to inf and flushes subnormals") {
  const Array x = array({0.0, -0.0, 65519.0, 65520.0, -70000.0, inf, nan, 1 + 0x1p-11,
                         1 + 3 * 0x1p-11, 0x1p-14, 0x1p-15, 0x1.ffffp-15});
  check_numbers(lax::reduce_precision(x, 5, 10),
                {0.0, -0.0, 65504, inf, -inf, inf, nan, 1, 1 + 0x1p-9, 0x1p-14, 0.0, 0x1p-14});
  check_numbers(lax::reduce_precision(x, 8, 23), x.to_vector<double>());
  check_numbers(lax::reduce_precision(x, 11, 52), x.to_vector<double>());
  check_numbers(lax::reduce_precision(array({3.4e38, 1e-40}), 8, 7),
                array({3.4e38, 1e-40}).astype(bfloat16).to_vector<double>());
  check_numbers(lax::reduce_precision(array({1.0, 3.0, 0.25, 3.5}), 2, 0), {1, 2, 0.0, inf});
  check_numbers(lax::reduce_precision(array({1.1, 70000.0}).astype(bfloat16), 5, 3), {1.125, inf});
  check_numbers(lax::reduce_precision(array(std::vector<double>{1.1, 1e39}), 8, 23),
                {static_cast<double>(1.1f), inf});
  CHECK_THROWS_AS(lax::reduce_precision(x, 0, 10), TypeError);
  CHECK_THROWS_AS(lax::reduce_precision(x, 5, -1), TypeError);
  CHECK_THROWS_AS(lax::reduce_precision(array({1}), 5, 10), TypeError);
}

TEST_CASE("stop_gradient stops, copy and name let the tangent through") {
  const Array x = array(std::vector<double>{1.5, -2});
  const auto tangent_of = [&](const FlatFunction& f) {
    return jvp(*trace(f, {x.type()}).program, {x}, {x}).tangents[0];
  };
  CHECK_FALSE(tangent_of([](const Arrays& a) { return Arrays{lax::stop_gradient(a[0])}; }));
  check_derivatives([](const Arrays& a) { return Arrays{lax::copy(a[0])}; }, {x});
  const auto named = [](const Arrays& a) { return name_p.bind(a, {{"name", std::string("h")}}); };
  check_numbers(*tangent_of(named), {1.5, -2});
  check_numbers(lax::copy(x), {1.5, -2});
  check_numbers(lax::stop_gradient(array({1, 2})), {1, 2});
}

}  // namespace
}  // namespace reprise
