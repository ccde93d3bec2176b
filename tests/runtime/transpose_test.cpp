// Kernels whose operands or results are turned: neighbours in memory lie along rows.
#include "runtime/threads.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace rp = reprise;
using rp::Array;

namespace {

Array counting(const rp::Shape& shape, rp::Dtype dtype) {
  const std::int64_t n = rp::Type{dtype, shape}.size();
  return rp::reshape(rp::arange(n) % 251, shape).astype(dtype);
}

template <class F>
void check_same(const F& f, const Array& x) {
  const Array expected = f(x), got = rp::jit(f)(x);
  REQUIRE(got.type() == expected.type());
  CHECK(got.to_vector<double>() == expected.to_vector<double>());
}

}  // namespace

TEST_CASE("compiled transposes are those of the evaluator, in every order of the dimensions") {
  for (const rp::Shape& shape :
       {rp::Shape{40, 33, 70}, {16, 64, 128}, {3, 100, 17}, {130, 2, 65}, {64, 64, 1}}) {
    INFO(rp::to_string(rp::Type{rp::float32, shape}));
    rp::lax::Ints order{0, 1, 2};
    do {
      check_same([order](Array x) { return rp::transpose(x, order) * 2.0f; },
                 counting(shape, rp::float32));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_CASE("compiled transposes are those of the evaluator for every size of element") {
  for (const rp::Dtype dtype : {rp::bool_, rp::uint8, rp::int16, rp::bfloat16, rp::int32,
                                rp::float32, rp::int64, rp::float64}) {
    INFO(std::string(rp::long_name(dtype)));
    const Array x = counting({77, 77}, dtype);
    check_same([](Array v) { return rp::transpose(v); }, x);
    check_same(
        [](Array v) { return rp::where(rp::equal(rp::transpose(v), v), v, rp::transpose(v)); }, x);
  }
}

TEST_CASE("results are written turned where they are part of a transposed value") {
  const Array x = counting({50, 90}, rp::float32);
  check_same(
      [](Array v) {
        return rp::transpose(rp::concatenate({rp::abs(v - 9.0f), v * 2.0f}, 1)) + 1.0f;
      },
      x);
  check_same(
      [](Array v) {
        return rp::concatenate({rp::transpose(v), rp::transpose(v * 2.0f), rp::transpose(v)}, 1);
      },
      x);
  check_same([](Array v) { return rp::matmul(rp::transpose(v) + 1.0f, v); },
             counting({40, 40}, rp::float32) * 0.0f + 1.0f);
}

TEST_CASE("an operand may be turned and straight, broadcast and reversed in the same kernel") {
  const Array x = counting({96, 96}, rp::float32), row = counting({96}, rp::float32);
  check_same([row](Array v) { return rp::transpose(v) - v + row; }, x);
  check_same([row](Array v) { return rp::transpose(v + row) * rp::transpose(rp::flip(v, 1)); }, x);
  check_same(
      [](Array v) {
        return rp::stack({rp::transpose(v), rp::transpose(rp::flip(v, 0))}, 2);
      },
      x);
}

TEST_CASE("transposes give the same bits with any number of threads") {
  const Array x = counting({301, 517}, rp::float32);
  const auto f = [](Array v) { return rp::exp(rp::transpose(v) * -0.01f); };
  const int before = rp::num_threads();
  std::vector<float> expected;
  for (const int threads : {1, 2, 5}) {
    rp::set_num_threads(threads);
    const std::vector<float> got = rp::jit(f)(x).to_vector<float>();
    if (expected.empty()) expected = got;
    CHECK(got == expected);
  }
  rp::set_num_threads(before);
}
