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

TEST_CASE("g02: checkpoint, and jit of it") {
  auto h = rp::checkpoint(sin_sin);
  Section s("g02_transforms", "");
  s.traced(h, 1.0);
  s.traced(rp::jit(h, {.name = "side"}), 1.0);
  s.end();
}

TEST_CASE("g21: remat is another name of checkpoint") {
  auto sine = [](Array x) { return rp::sin(x); };
  Section s("g21_misc_errors", "remat kw");
  s.numbers({rp::remat(sine, {.policy = {}, .prevent_cse = false})(1.0).item<double>()});
  s.end();
  CHECK(rp::make_jaxpr(rp::remat(sin_sin))(1.0).str() ==
        rp::make_jaxpr(rp::checkpoint(sin_sin))(1.0).str());
}

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
      .traced(rp::vmap(two, {.in_axes = {std::nullopt, 0}, .out_axes = {0, std::nullopt}}),
              rp::ones({2, 3}), rp::ones({5, 3}));
  Section("g02_transforms", "vmap grad").traced(rp::vmap(rp::grad(h)), three);
  Section("g02_transforms", "grad vmap")
      .traced(rp::grad([h](Array x) { return rp::sum(rp::vmap(h)(x)); }), three);
  Section("g02_transforms", "second order").traced(rp::grad(rp::grad(h)), 1.0);
}

TEST_CASE("g02: the linear function of checkpoint") {
  auto h = rp::checkpoint(sin_sin);
  // vjp's forward program is linearize's: values, then residuals.
  Section("g02_transforms", "make_jaxpr linearize out").forward(h, 1.0);
  for (const Array& x : {Array(1.0), rp::full({}, 1.0, rp::float32)}) {
    const auto linear = rp::linearize(h, x).second;
    Section s("g02_transforms",
              x.weak_type() ? "linearize eager jaxpr" : "linearize eager jaxpr with Array");
    s.traced(linear, Array(1.0));
    s.program(linear.jaxpr().str());
  }
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
  auto over_constant = [c](Array v) {
    return rp::checkpoint([c](Array z) { return rp::sin(z) * c; })(v);
  };
  Section constant("g03_scan_closure_dtypes", "closure over array const");
  constant.traced(over_constant, c);
  constant.skip("[Array([0., 1., 2.], dtype=float32)]");
  CHECK(rp::make_jaxpr(over_constant)(c).consts().at(0).to_vector<double>() ==
        std::vector<double>{0, 1, 2});
  constant.residuals(over_constant, rp::arg("x", c));
  constant.end();
  Section numbers("g03_scan_closure_dtypes", "closure over np array");  // arrays are arrays here
  numbers.traced(over_constant, c);
  numbers.residuals(over_constant, rp::arg("x", c));
  numbers.end();
}

TEST_CASE("g03: integer and bool arguments, constant results") {
  auto f = rp::checkpoint([](Array x, Array i, Array b) {
    Array s = rp::sin(x);
    s = s * i;
    s = rp::where(b, s, x);
    return Pair{s, i + 1};
  });
  const Array x = 1.0, i = 2, b = true;
  Section mixed("g03_scan_closure_dtypes", "int & bool inputs");
  mixed.traced(f, x, i, b);
  mixed.forward(f, x, i, b);
  mixed.residuals(f, RP_ARGS(x, i, b));
  const auto [y, backward] = rp::vjp(f, x, i, b);
  const auto gradients = backward(Pair{Array(1.0), rp::zeros({}, rp::float0)});
  mixed.numbers({std::get<0>(gradients).item<double>()});
  CHECK(std::get<1>(gradients).dtype() == rp::float0);
  mixed.end();
  Section constant("g03_scan_closure_dtypes", "const out");
  constant.traced(rp::checkpoint([](Array v) {
                    return std::tuple{v, Array(3.0), rp::arange(2)};
                  }),
                  x);
  constant.end();
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

TEST_CASE("g15: the transpose of a linear function inside checkpoint") {
  auto twice = rp::checkpoint([](Array x) { return 2.0 * x; });
  Section s("g15_eager_misc", "linear_transpose");
  s.numbers({std::get<0>(rp::vjp(twice, Array(1.0)).second(Array(3.0))).item<double>()});
  s.end();
}

TEST_CASE("g15: dead code, zero tangents, partial use, nested checkpoints") {
  Section dead("g15_eager_misc", "known DCE under remat: logsumexp");
  dead.forward(rp::checkpoint([](Array x) { return rp::logsumexp(x); }), three);
  dead.end();
  Section zero("g15_eager_misc", "all-zero tangents");
  zero.traced(rp::grad([](Array x, Array y) {
                return x * rp::checkpoint([](Array v) { return rp::sin(v); })(y);
              }),
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
