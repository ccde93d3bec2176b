// Value numbers: equal for values that are computed alike.
#include "transform/value_numbers.h"

#include "program/program.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;

namespace {

// The numbers of the results, counted from the first that occurs: "0 1 0".
std::string numbers_of(const char* text, const rp::Arrays& consts = {}) {
  const rp::Jaxpr jaxpr = rp::parse_jaxpr(text);
  const rp::Program& p = *jaxpr.program();
  const rp::ValueNumbers numbers = rp::value_numbers(p, consts);
  std::vector<std::size_t> order;
  std::string result;
  for (const rp::Atom& a : p.out) {
    const std::size_t number = numbers.of[static_cast<std::size_t>(a.var)];
    std::size_t at = 0;
    while (at < order.size() && order[at] != number) ++at;
    if (at == order.size()) order.push_back(number);
    result += (result.empty() ? "" : " ") + std::to_string(at);
  }
  return result;
}

}  // namespace

TEST_CASE("values computed alike from equal operands have one number") {
  CHECK(numbers_of("{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = sin a; d:f32[3] = cos a "
                   "in (b, c, d) }") == "0 0 1");
  CHECK(
      numbers_of(
          "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a b; d:f32[3] = add b a in (c, d) }") ==
      "0 1");
  CHECK(numbers_of("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes=(0,) out_sharding=None] a; "
                   "c:f32[3] = integer_pow[y=2] a; d:f32[3] = integer_pow[y=3] a in (b, c, d) }") ==
        "0 1 2");
}

TEST_CASE("literals are equal by value and dtype") {
  CHECK(
      numbers_of("{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[]; c:f32[3] = mul a 2.0:f32[]; "
                 "d:f32[3] = mul a 3.0:f32[] in (b, c, d) }") == "0 0 1");
}

TEST_CASE("names and rounding to the own precision are other names of a value") {
  CHECK(numbers_of(
            "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = name[name=h] b; "
            "d:f32[3] = reduce_precision[exponent_bits=8 mantissa_bits=23] c; "
            "e:f32[3] = reduce_precision[exponent_bits=5 mantissa_bits=10] c in (b, c, d, e) }") ==
        "0 0 0 1");
}

TEST_CASE("constants are equal by value when values are given") {
  const char* text = "{ lambda a:f32[] b:f32[] c:f32[]; . let  in (a, b, c) }";
  CHECK(numbers_of(text) == "0 1 2");
  CHECK(numbers_of(text, {rp::array(1.0), rp::array(1.0), rp::array(2.0)}) == "0 0 1");
}

TEST_CASE("taking apart a stack gives its parts") {
  const char* text =
      "{ lambda ; a:f32[3] b:f32[3]. let c:f32[2,3] = stack[axis=0] a b; d:f32[3] e:f32[3] = "
      "unstack[axis=0] c; "
      "f:f32[2] g:f32[2] h:f32[2] = unstack[axis=1] c in (a, b, d, e, f, g) }";
  CHECK(numbers_of(text) == "0 1 0 1 2 3");
}
