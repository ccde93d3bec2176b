// Elementwise primitives that machine code knows nothing of: compiled by their records, or evaluated.
#include "codegen/emit_ops.h"
#include "ops/elementwise.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>

namespace reprise {
namespace {

Array steep_tangent(X x, X dx, X) {
  const Array slope = lax::exp(x);
  return lax::mul(dx, slope);
}
constexpr auto steep = [](auto v) { return std::exp(v) - 2; };

// By name it is no function of libm: its scalar code is called.
constinit const Primitive with_lanes_p = unary<"steep", Domain::floating, steep_tangent, steep>;
// The same record written out, with an evaluator alone.
constinit const Primitive evaluated_p{.name = "steep_too",
                                      .kind = Kind::elementwise,
                                      .type = elementwise::type_of<"steep_too", Domain::floating>,
                                      .eval = elementwise::eval_unary<Domain::floating, steep>,
                                      .batch = elementwise::batch,
                                      .arity = 1};

Array ramp(Dtype d) { return linspace(-3.0, 3.0, 1003).astype(d); }

// In the midst of others, so that they would share a kernel.
Array around(const Primitive& p, const Array& x) {
  const Array twice = lax::add(x, x);
  const Array middle = p.bind1({twice});
  return lax::neg(middle);
}

TEST_CASE("an elementwise record has machine code by a row, by its scalar code, or not at all") {
  CHECK(codegen::has_vector_code(with_lanes_p));
  CHECK_FALSE(codegen::has_vector_code(evaluated_p));
}

TEST_CASE("compiled by its scalar code, or evaluated between kernels: the same bits as eval") {
  for (const Primitive* p : {&with_lanes_p, &evaluated_p}) {
    for (const Dtype d : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16}) {
      const Array x = ramp(d);
      const Array expected = around(*p, x);
      const Array got = jit([&](Array v) { return around(*p, v); })(x);
      CHECK(all(lax::eq(got, expected)).item<bool>());
    }
  }
}

TEST_CASE("its text says who computes it") {
  const auto text = [](const Primitive& p) {
    return jit([&](Array v) { return around(p, v); }).lower(ramp(Dtype::f32)).compile().as_text();
  };
  CHECK(text(evaluated_p).find("eval") != std::string::npos);
}

}  // namespace
}  // namespace reprise
