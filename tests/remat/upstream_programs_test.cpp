// JAX's JaxprTest: exact texts of small programs.
#include "remat/upstream.h"

using namespace upstream;

TEST_CASE("JaxprTest: numbers are literals, arrays are constants, results may be either") {
  auto f = [](Array x) { return std::tuple{x, Array(1.0), rp::array(std::vector<float>{0})}; };
  CHECK(text(f, rp::full({}, 0.0, rp::float32)) ==
        "{ lambda a:f32[1]; b:f32[]. let  in (b, 1.0:f32[], a) }");
  CHECK(text([](Array x) { return x + 2; }, 42) ==
        "{ lambda ; a:i32[]. let b:i32[] = add a 2:i32[] in (b,) }");
}

TEST_CASE("JaxprTest: a cond whose branches close over the argument") {
  auto f = [](Array x) {
    const Array at_least = x >= 0.0;
    const Array yes = x + 1.0;
    const Array no = x + 2.0;
    return rp::cond(
        at_least, [x](Array a, Array) { return a + x; }, [x](Array, Array b) { return b - x; }, yes,
        no);
  };
  CHECK(text(f, 3.0) == R"({ lambda ; a:f32[]. let
    b:bool[] = ge a 0.0:f32[]
    c:f32[] = add a 1.0:f32[]
    d:f32[] = add a 2.0:f32[]
    e:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
    f:f32[] = cond[
      branches=(
        { lambda ; g:f32[] h:f32[] i:f32[]. let j:f32[] = sub i g in (j,) }
        { lambda ; k:f32[] l:f32[] m:f32[]. let n:f32[] = add l k in (n,) }
      )
    ] e a c d
  in (f,) })");
}

TEST_CASE(
    "JaxprTest: conversions and broadcasts that change nothing are left out, those of numbers "
    "folded") {
  const std::string nothing = "{ lambda ; a:f32[2]. let  in (a,) }";
  CHECK(text([](Array x) { return rp::lax::convert_element_type(x, rp::float32); },
             rp::ones({2})) == nothing);
  CHECK(text([](Array x) { return rp::broadcast_to(x, {2}); }, rp::ones({2})) == nothing);
  CHECK(text([] { return rp::lax::convert_element_type(1.0, rp::float32); }) ==
        "{ lambda ; . let  in (1.0:f32[],) }");
}
