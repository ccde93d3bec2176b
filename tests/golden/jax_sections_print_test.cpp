// Sections g10, g11, g18, g19 and g20: residual labels, printed programs, the table of both passes.
#include "golden/sections.h"
#include "program/print.h"

using namespace golden;

namespace {

const Array one = 1.0, two = 2.0, three = rp::ones({3});

Array product(Array x, Array y) { return x * y; }

struct Multiply {
  Array operator()(Array x, Array y) const { return x * y; }
};
struct SineOf {
  Array operator()(Array x, Array y) const {
    x = rp::sin(x);
    return x * y;
  }
};
// The whole section is one residual list.
template <class F, class... A>
void labels(const std::string& heading, const F& f, const A&... args) {
  Section s("g10_saved_residuals_labels", heading);
  s.residuals(f, args...);
  s.end();
}
template <int n>
Array sins(Array x) {
  for (int i = 0; i < n; ++i) x = rp::sin(x);
  return x;
}
template <class F>
void table(Section& s, const F& f, const Array& x) {
  std::ostringstream ours;
  ours << rp::fwd_bwd(f, x);
  s.line("True");
  std::istringstream lines(ours.str());
  for (std::string line; std::getline(lines, line);) s.line(line);
  s.line("");
}

}  // namespace

TEST_CASE("g10: arguments by the names of their parameters, whatever kind of function") {
  const Array x = one, y = two;
  labels(
      "lax.mul", [](Array a, Array b) { return rp::lax::mul(a, b); }, RP_ARGS(x, y));
  labels(
      "jnp.sin", [](Array a) { return rp::sin(a); }, RP_ARGS(x));
  labels("jnp.multiply", product, x, y);
  labels("jit", rp::jit(product), RP_ARGS(x, y));
  labels("checkpoint", rp::checkpoint(product), RP_ARGS(x, y));
  Section object("g10_saved_residuals_labels", "callable obj");
  object.residuals(Multiply{}, RP_ARGS(x, y));
  object.residuals(SineOf{}, RP_ARGS(x, y));
  object.end();
  const rp::None n;
  labels(
      "None leaf", [](Array a, rp::None, Array b) { return a * b; }, RP_ARGS(x, n, y));
  labels(
      "default", [](Array a, double b = 2.0) { return a * b; }, RP_ARGS(x), 2.0);
  Section varargs("g10_saved_residuals_labels", "varargs");
  varargs.residuals([](std::vector<Array> xs) { return xs[0] * xs[1]; },
                    rp::arg("xs", std::vector{x, y}));
  varargs.end();
}

TEST_CASE("g10: indices, constants, numbers, repeated uses, powers") {
  const Array x = three;
  Section indexed("g10_saved_residuals_labels", "int arg");
  indexed.residuals(
      [](Array v, Array i) {
        v = v[i];
        return v * 2.0;
      },
      RP_ARGS(x), rp::arg("i", Array(1)));
  indexed.end();
  labels(
      "index static",
      [](Array v) {
        Array a = v[1];
        Array b = v[0];
        return a * b;
      },
      RP_ARGS(x));
  const Array c1 = rp::ones({3}), c2 = rp::ones({3});
  labels(
      "constants", [c1, c2](Array v) { return v * c1 * c2; }, RP_ARGS(x));
  const Array s = rp::full({}, 2.0, rp::float32);
  labels(
      "jax scalar closure", [s](Array v) { return v * s; }, RP_ARGS(x));
  labels(
      "python scalar strong", [](Array v) { return v * 2.0; }, RP_ARGS(x));
  labels(
      "python scalar weak", [](Array v) { return v * 2.0; }, rp::arg("x", one));
  labels(
      "two same literal", [](Array v) { return v * 2.0 * 2.0 * 3.0; }, RP_ARGS(x));
  labels(
      "dup use",
      [](Array v) {
        Array sine = rp::sin(v);
        return sine * v * v;
      },
      rp::arg("x", one));
  Section powers("g10_saved_residuals_labels", "x**2, x**3, x**2.5");
  powers.residuals([](Array v) { return rp::power(v, 2); }, RP_ARGS(x));
  powers.residuals([](Array v) { return rp::power(v, 3); }, RP_ARGS(x));
  powers.residuals([](Array v) { return rp::power(v, 2.5); }, RP_ARGS(x));
  powers.end();
  const Array a = rp::ones({2});
  labels("same array passed twice", product, rp::arg("x", a), rp::arg("y", a));
}

TEST_CASE("g10: functions whose result is a residual, dtypes, functions that save nothing") {
  const Array x = one, v = three;
  Section results("g10_saved_residuals_labels", "output is residual");
  results.residuals([](Array a) { return rp::exp(a); }, RP_ARGS(x));
  results.residuals([](Array a) { return rp::tanh(a); }, RP_ARGS(x));
  results.residuals([](Array a) { return rp::nn::sigmoid(a); }, RP_ARGS(x));
  results.residuals([](Array a) { return rp::nn::softmax(a); }, rp::arg("x", v));
  results.residuals([](Array a) { return rp::nn::gelu(a); }, rp::arg("x", v));
  results.residuals([](Array a) { return rp::nn::silu(a); }, rp::arg("x", v));
  results.end();
  auto sine_times = [](Array a) {
    Array s = rp::sin(a);
    return s * a;
  };
  Section half("g10_saved_residuals_labels", "bf16/f16/f64/c64");
  half.residuals(sine_times, rp::arg("x", rp::ones({3}, rp::bfloat16)));
  labels(
      "int fun", [](Array i) { return i * 2; }, rp::arg("i", Array(3)));
  labels(
      "empty", [](Array a) { return a; }, RP_ARGS(x));
  const std::vector<rp::SavedResidual> raw = rp::saved_residuals(sine_times, RP_ARGS(x));
  REQUIRE(raw.size() == 3);  // weak types, as in "saved_residuals raw"
  for (const rp::SavedResidual& r : raw) CHECK(r.type.weak_type);
  // JAX has an assertion here; a value and its rounded form are one line.
  const auto rounded = rp::saved_residuals(
      [](Array a) {
        a = rp::sin(a);
        Array z = rp::lax::reduce_precision(a, 8, 23);
        return a * z;
      },
      RP_ARGS(x));
  CHECK(rounded.size() == 2);
}

TEST_CASE("g18: the table of the forward and the backward program") {
  Section s("g18_fwd_bwd_table", "");
  table(s, sins<8>, Array(3.0));
  table(s, rp::checkpoint(sins<3>), two);
  table(s, rp::checkpoint(sins<12>), three);
  s.end();
}

TEST_CASE("g19: programs used twice are printed once") {
  Section s("g19_pp_literals_sharing", "");
  auto b = rp::jit(
      [](Array x) {
        x = rp::sin(x);
        return x * 2;
      },
      {.name = "b"});
  s.traced([b](Array x) { return b(b(x)); }, three);
  auto g2 = rp::jit(
      [b](Array x) {
        x = b(b(x));
        return rp::cos(x);
      },
      {.name = "g2"});
  s.traced([g2](Array x) { return g2(g2(x)); }, three);
  auto sine = rp::jit([](Array x) { return rp::sin(x); });
  auto cosine = rp::jit([](Array x) { return rp::cos(x); });
  s.traced(
      [=](Array x) {
        Array l = sine(sine(x));
        Array r = cosine(cosine(x));
        return l + r;
      },
      three);
  auto h = rp::checkpoint(sins<2>);
  auto twice = [h](Array x) { return h(h(x)); };
  s.traced(twice, one);
  s.traced(rp::grad(twice), one);
  s.end();
}

TEST_CASE("g19: literals, dtypes, empty programs, long lines") {
  Section literals("g19_pp_literals_sharing", "literals");
  auto literal = [&](const Array& v) { literals.traced([v] { return v; }); };
  for (double v : {1.0, 1e-5, 1e16, 1e15, 123456.789, HUGE_VAL, -HUGE_VAL, std::nan("")})
    literal(v);
  literal(3);
  literal(true);
  literals.skip(
      "{ lambda ; . let  in (0.0999755859375:f16[],) }");  // after complex and numpy scalars
  literal(rp::full({}, 0.1, rp::bfloat16));
  literals.skip("{ lambda ; . let  in (3:u8[],) }");
  literal(-0.0);
  literal(2147483647);
  literal(1e-45);
  literal(3.4e38);
  literals.end();
  Section dtypes("g19_pp_literals_sharing", "dtypes");
  for (rp::Dtype d : {rp::bool_, rp::int8, rp::int16, rp::int32, rp::uint8, rp::uint16, rp::uint32,
                      rp::float16, rp::bfloat16, rp::float32}) {
    dtypes.traced([](Array x) { return x; }, rp::zeros({2}, d));
  }
  dtypes.skip(
      "{ lambda ; a:key<fry>[]. let  in (a,) } { lambda ; a:key<rbg>[]. let  in (a,) } "
      "{ lambda ; a:key<fry>[3]. let  in (a,) }");  // after complex, small floats and integers
  dtypes.traced([](Array x) { return x; }, rp::zeros({2, 0, 3}));
  dtypes.end();
  Section lines("g19_pp_literals_sharing", "no params, no outputs, trailing");
  auto quoted = [](const rp::Jaxpr& p) {
    return "'" + std::regex_replace(p.str(), std::regex("\n"), "\\n") + "'";
  };
  lines.line(quoted(rp::make_jaxpr([] { return rp::arange(3); })()));
  lines.line(quoted(rp::make_jaxpr([](Array) { return rp::none; })(one)));
  lines.line(quoted(rp::make_jaxpr([] { return rp::none; })()));
  lines.traced([](Arrays a) { return a; }, Arrays(30, one));
  lines.traced([](Arrays a) { return rp::lax::concatenate(a, 0); }, Arrays(30, three));
  lines.traced(
      [](Array x) {
        auto body = [](Arrays c, rp::None) {
          for (Array& v : c) v = rp::sin(v);
          return std::pair{c, rp::none};
        };
        return rp::scan(body, Arrays(12, x), rp::none, {.length = 2}).first;
      },
      three);
  lines.end();
  Section width("g19_pp_literals_sharing", "width");
  auto sin_cos_sin = [](Array x) { return rp::sin(rp::cos(rp::sin(x))); };
  width.traced(sin_cos_sin, one);
  width.traced([](Array x) { return rp::sin(rp::cos(rp::tan(rp::sin(x)))); }, one);
  const auto matrix =
      rp::make_jaxpr([](Array x) { return rp::sin(rp::cos(x)); })(rp::ones({10, 10}));
  width.program(matrix.str());
  width.line(" " + std::to_string(matrix.str().size()));
  width.end();
}

TEST_CASE("g19: a gradient of an integer is float0") {
  Section s("g19_pp_literals_sharing", "float0");
  s.traced([](Array i) { return rp::vjp([](Array v) { return v * 1.0; }, i).second(Array(1.0)); },
           Array(3));
  s.end();
}

TEST_CASE("g20: numbers become literals of the dtype they are promoted to") {
  Section s("g20_literals_caching_scan", "");
  auto tenth = [](Array x) { return x * 0.1; };
  s.traced(tenth, three);
  s.traced(tenth, one);
  const std::string strong =
      "    c:f32[] = mul b 0.10000000149011612:f32[]\n  in (c,) }";  // of numpy's scalars
  s.skip(strong.substr(strong.find("  in")));
  s.skip(strong.substr(strong.find("  in")));
  auto twice = [](Array x) { return x * 2; };
  s.traced(twice, three);
  s.traced(twice, one);
  s.traced(
      [](Array x) {
        x = 2 * x;
        return x - 1;
      },
      one);
  s.traced([](Array x) { return x / 3; }, three);
  s.traced([](Array x) { return rp::power(x, 2); }, one);
  s.traced(
      [](Array x) {
        Array n = -x;
        Array p = x > 0;
        return n + p;
      },
      one);
  s.end();
}

TEST_CASE("g11: a program without the types of its variables") {
  auto f = rp::checkpoint([](Array x, Array W) {
    x = rp::matmul(W, x);
    return rp::sin(x);
  });
  const rp::Jaxpr p = rp::make_jaxpr(f)(three, rp::ones({3, 3}));
  const std::string text = rp::to_text(*p.program(), {.print_shapes = false});
  CHECK(read_file("jax/g11_lowering_vjp_log_pp.out").find("\n" + text + "\n") != std::string::npos);
}
