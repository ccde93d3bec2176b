// Sections g02, g03 and g15: checkpoint under transforms, closures, dtypes, partial use.
#include "golden/sections.h"

using namespace golden;

namespace {

Array sin_sin(Array x) {
  x = rp::sin(x);
  return rp::sin(x);
}
const Array three = rp::ones({3});

}  // namespace

TEST_CASE("g02: grad, value_and_grad, jvp, vmap and second order of checkpoint") {
  auto h = rp::checkpoint(sin_sin);
  Section("g02_transforms", "make_jaxpr grad").traced(rp::grad(h), 1.0);
  Section("g02_transforms", "make_jaxpr value_and_grad").traced(rp::value_and_grad(h), 1.0);
  Section("g02_transforms", "make_jaxpr jvp")
      .traced([h](Array x, Array t) { return rp::jvp(h, std::tuple{x}, std::tuple{t}); }, 1.0, 1.0);
  Section("g02_transforms", "vmap").traced(rp::vmap(h), three);
  auto two = rp::checkpoint([](Array W, Array x) {
    Array y = rp::matmul(W, x);
    y = rp::sin(y);
    return Pair{y, rp::cos(W)};
  });
  Section("g02_transforms", "vmap partial unbatched")
      .traced(rp::vmap(two, {.in_axes = {std::nullopt, 0}, .out_axes = {0, std::nullopt}}), rp::ones({2, 3}),
              rp::ones({5, 3}));
  Section("g02_transforms", "vmap grad").traced(rp::vmap(rp::grad(h)), three);
  Section("g02_transforms", "grad vmap").traced(rp::grad([h](Array x) { return rp::sum(rp::vmap(h)(x)); }), three);
  Section("g02_transforms", "second order").traced(rp::grad(rp::grad(h)), 1.0);
}

TEST_CASE("g03: loops with and without a checkpointed body") {
  auto body = [](Array c, Array x) {
    c = c * x;
    c = rp::sin(c);
    return Pair{c, c};
  };
  // JAX widens the weak carry; here the carry has the type of the result from the start.
  const Array c = rp::full({}, 1.0, rp::float32), xs = rp::arange(3.0);
  auto run = [](auto step) {
    return [step](Array a, Array b) { return rp::scan(step, a, b).first; };
  };
  Section without("g03_scan_closure_dtypes", "scan body no remat");
  without.residuals(run(body), RP_ARGS(c, xs));
}

TEST_CASE("g03: closures over traced values and constants") {
  auto f = [](Array x, Array y) {
    return rp::checkpoint([y](Array z) { return rp::sin(z) * y; })(x);
  };
  const Array x = 1.0, y = 2.0;
  Section traced("g03_scan_closure_dtypes", "closure over tracer");
  traced.traced(f, x, y);
  traced.traced(rp::grad<0, 1>(f), x, y);
  traced.residuals(f, RP_ARGS(x, y));
  traced.end();
  const Array c = rp::arange(3.0);
  auto over_constant = [c](Array v) { return rp::checkpoint([c](Array z) { return rp::sin(z) * c; })(v); };
  Section constant("g03_scan_closure_dtypes", "closure over array const");
  constant.traced(over_constant, c);
}

TEST_CASE("g03: unused, linear, identical and constant results") {
  const Array x = 1.0, y = 2.0;
  Section unused("g03_scan_closure_dtypes", "unused input");
  unused.residuals(rp::checkpoint([](Array a, Array) { return rp::sin(a); }), RP_ARGS(x, y));
  unused.end();
  auto linear = rp::checkpoint([](Array a, Array b) {
    Array twice = 2 * b;
    return a + twice;
  });
  Section affine("g03_scan_closure_dtypes", "linear fn");
  affine.residuals(linear, RP_ARGS(x, y));
  affine.traced(rp::grad<0, 1>(linear), x, y);
  affine.end();
  auto same = rp::checkpoint([](Array a) { return a; });
  Section identity("g03_scan_closure_dtypes", "identity");
  identity.residuals(same, RP_ARGS(x));
  identity.traced(rp::grad(same), x);
  identity.end();
}

TEST_CASE("g15: dead code, zero tangents, partial use, nested checkpoints") {
  Section dead("g15_eager_misc", "known DCE under remat: logsumexp");
  dead.forward(rp::checkpoint([](Array x) { return rp::logsumexp(x); }), three);
  dead.end();
  Section zero("g15_eager_misc", "all-zero tangents");
  zero.traced(rp::grad([](Array x, Array y) { return x * rp::checkpoint([](Array v) { return rp::sin(v); })(y); }),
              1.0, 2.0);
  zero.end();
  auto m = rp::checkpoint([](Array x, Array y) {
    Array s = rp::sin(x);
    return Pair{s, rp::exp(y)};
  });
  auto first = [m](Array x, Array y) { return m(x, y).first; };
  Section partial("g15_eager_misc", "multi-output with partial use");
  partial.traced(rp::grad(first), 1.0, 2.0);
  partial.traced(rp::grad<0, 1>(first), 1.0, 2.0);
  partial.end();
  Section twice("g15_eager_misc", "checkpoint(jit) name in jaxpr, checkpoint(checkpoint)");
  twice.traced(rp::checkpoint(rp::jit([](Array x) { return rp::sin(x); }, {.name = "sin"})), 1.0);
  twice.traced(rp::grad(rp::checkpoint(rp::checkpoint(sin_sin))), 1.0);
  twice.end();
}
