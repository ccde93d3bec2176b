// jvp and linearize on programs: order of equations, residuals, symbolic zeros, sharing.
#include "transform/jvp.h"

#include "api/flat.h"
#include "derivatives.h"
#include "program/print.h"

namespace {

using namespace check;
using rp::Tangent;
using rp::Tangents;

rp::ProgramPtr traced(const rp::FlatFunction& f, const Arrays& args) {
  return rp::trace(f, rp::leaf_types(args), {.body = true}).program;
}
Arrays sine_times(const Arrays& x) {
  Array s = rp::sin(x[0]);
  return {s * x[1], x[1] + 1.0};
}
Array sine_exp(Array x) {
  Array s = rp::sin(x);
  Array e = rp::exp(x);
  return s * e;
}
const Array one = rp::full({}, 1.0, rp::float32);

}  // namespace

TEST_CASE("jvp keeps symbolic zeros symbolic") {
  const auto p = traced(sine_times, {one, one});
  const rp::Duals both = rp::jvp(*p, {one, one}, {one, one});
  CHECK(both.tangents[0].has_value());
  CHECK(both.tangents[1].has_value());
  const rp::Duals first = rp::jvp(*p, {one, one}, {one, std::nullopt});
  CHECK(first.tangents[0]->item<double>() == doctest::Approx(std::cos(1.0)));
  CHECK(!first.tangents[1].has_value());
  const rp::Duals none = rp::jvp(*p, {one, one}, {std::nullopt, std::nullopt});
  CHECK(!none.tangents[0].has_value());
  CHECK(none.out[0].item<double>() == doctest::Approx(std::sin(1.0)));
}

TEST_CASE("the jvp program takes tangents of active inputs and is made once") {
  const auto p = traced(sine_times, {one, one});
  const auto j = rp::jvp_program(*p, {true, false});
  CHECK(j->nonzero_out == std::vector<bool>{true, false});
  CHECK(rp::to_text(*j->program, {}) == R"({ lambda ; a:f32[] b:f32[] c:f32[]. let
    d:f32[] = sin a
    e:f32[] = cos a
    f:f32[] = mul c e
    g:f32[] = mul d b
    h:f32[] = mul f b
    i:f32[] = add b 1.0:f32[]
  in (g, i, h) })");
  CHECK(rp::jvp_program(*p, {true, false}) == j);
  CHECK(rp::jvp_program(*p, {true, true}) != j);
  const auto filled = rp::jvp_program(*p, {true, false}, {true, true});
  CHECK(filled->nonzero_out == std::vector<bool>{true, true});
}

TEST_CASE("linearize splits a program; dead residuals are gone, the others in order of use") {
  auto f = [](const Arrays& x) -> Arrays {
    Array s = rp::sin(x[0]);
    Array unused = rp::exp(s) * x[0];
    Array c = rp::cos(s);
    return {c * x[1]};
  };
  const auto p = traced(f, {one, one});
  const rp::Linearized lin = rp::linearize(*p, {one, one}, {true, true});
  REQUIRE(lin.residuals.size() == 4);  // cos x, sin s, y, cos s
  CHECK(lin.residuals[0].item<double>() == doctest::Approx(std::cos(1.0)));
  CHECK(lin.residuals[1].item<double>() == doctest::Approx(std::sin(std::sin(1.0))));
  CHECK(lin.residuals[2].item<double>() == 1.0);
  CHECK(lin.residuals[3].item<double>() == doctest::Approx(std::cos(std::sin(1.0))));
  CHECK(lin.nonzero == std::vector<bool>{true});
}

TEST_CASE("what was evaluated for a number is used by linearize, not computed again") {
  const Arrays args{rp::full({100}, 0.5, rp::float64)};
  auto f = [](const Arrays& x) -> Arrays {
    Array y = rp::exp(x[0]);
    Array total = rp::sum(y);
    CHECK(total.item<double>() == doctest::Approx(100 * std::exp(0.5)));
    return {y * 2.0};
  };
  const rp::Traced t = rp::trace(f, rp::leaf_types(args), {.concrete_args = &args});
  const rp::Linearized lin = rp::linearize(*t.program, args, {true}, {.known = &t.known});
  const auto exp_of_x = static_cast<std::size_t>(t.program->eqns[0].out[0]);
  REQUIRE(t.known.size() > exp_of_x);
  REQUIRE(!lin.residuals.empty());
  CHECK(rp::identity(lin.residuals[0]) == rp::identity(*t.known[exp_of_x]));
}

TEST_CASE("a linearized program forwards residuals that are inputs") {
  const auto p = traced(sine_times, {one, one});
  const auto lin = rp::linearize_program(*p, {true, true}, {}, {true, true});
  REQUIRE(lin->forwarded.size() == 3);  // cos x, y, sin x
  CHECK(!lin->forwarded[0].has_value());
  CHECK(lin->forwarded[1] == std::optional<std::size_t>(1));
  CHECK(lin->extra_outputs == 2);
  const auto without = rp::linearize_program(*p, {true, true}, {}, {false, false});
  CHECK(without->extra_outputs == 3);
}

TEST_CASE("derivatives of derivatives print as JAX prints them") {
  auto second = [](Array x) {
    auto slope = [](Array v) { return rp::grad(sine_exp)(v); };
    return rp::grad(slope)(x);
  };
  CHECK(text(second, one) == R"({ lambda ; a:f32[]. let
    b:f32[] = sin a
    c:f32[] = cos a
    d:f32[] = cos a
    e:f32[] = sin a
    f:f32[] = exp a
    _:f32[] = mul b f
    g:f32[] = mul b 1.0:f32[]
    h:f32[] = mul 1.0:f32[] f
    i:f32[] = mul g f
    j:f32[] = mul h d
    _:f32[] = add_any i j
    k:f32[] = mul h 1.0:f32[]
    l:f32[] = mul 1.0:f32[] d
    m:f32[] = mul g 1.0:f32[]
    n:f32[] = mul 1.0:f32[] f
    o:f32[] = mul 1.0:f32[] l
    p:f32[] = add_any m o
    q:f32[] = mul n 1.0:f32[]
    r:f32[] = mul p f
    s:f32[] = neg k
    t:f32[] = mul s e
    u:f32[] = add_any r t
    v:f32[] = mul q c
    w:f32[] = add_any u v
  in (w,) })");
  auto forward_over_reverse = [](Array x, Array t) {
    return rp::jvp(rp::grad(sine_exp), std::tuple{x}, std::tuple{t});
  };
  CHECK(text(forward_over_reverse, one, one) == R"({ lambda ; a:f32[] b:f32[]. let
    c:f32[] = sin a
    d:f32[] = cos a
    e:f32[] = mul b d
    f:f32[] = cos a
    g:f32[] = sin a
    h:f32[] = mul b g
    i:f32[] = neg h
    j:f32[] = exp a
    k:f32[] = mul b j
    _:f32[] = mul c j
    l:f32[] = mul e j
    m:f32[] = mul c k
    _:f32[] = add_any l m
    n:f32[] = mul c 1.0:f32[]
    o:f32[] = mul e 1.0:f32[]
    p:f32[] = mul 1.0:f32[] j
    q:f32[] = mul 1.0:f32[] k
    r:f32[] = mul n j
    s:f32[] = mul o j
    t:f32[] = mul n k
    u:f32[] = add_any s t
    v:f32[] = mul p f
    w:f32[] = mul q f
    x:f32[] = mul p i
    y:f32[] = add_any w x
    z:f32[] = add_any r v
    ba:f32[] = add_any u y
  in (z, ba) })");
  auto reverse_over_forward = [](Array x, Array t) {
    auto along = [=](Array v) { return rp::jvp(sine_exp, std::tuple{v}, std::tuple{t}).second; };
    return rp::grad(along)(x);
  };
  CHECK(text(reverse_over_forward, one, one) == R"({ lambda ; a:f32[] b:f32[]. let
    c:f32[] = sin a
    d:f32[] = cos a
    e:f32[] = cos a
    f:f32[] = sin a
    g:f32[] = mul b e
    h:f32[] = exp a
    i:f32[] = mul b h
    _:f32[] = mul c h
    j:f32[] = mul g h
    k:f32[] = mul c i
    _:f32[] = add_any j k
    l:f32[] = mul c 1.0:f32[]
    m:f32[] = mul 1.0:f32[] i
    n:f32[] = mul g 1.0:f32[]
    o:f32[] = mul 1.0:f32[] h
    p:f32[] = mul b l
    q:f32[] = add_any n p
    r:f32[] = mul q h
    s:f32[] = mul b o
    t:f32[] = neg s
    u:f32[] = mul t f
    v:f32[] = add_any r u
    w:f32[] = mul m d
    x:f32[] = add_any v w
  in (x,) })");
}

TEST_CASE("the residuals of a linear function are listed in order of use, as in JAX") {
  auto f = [](Array x, Array t) {
    auto product = [](Array v) {
      Array s = rp::sin(v);
      return s * v;
    };
    const auto [y, linear] = rp::linearize(product, x);
    return linear(t);
  };
  CHECK(forward_text(f, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    e:f32[3] = cos a
    f:f32[3] = sin a
    _:f32[3] = mul c a
    g:f32[3] = mul b e
    h:f32[3] = mul g a
    i:f32[3] = mul c b
    j:f32[3] = add_any h i
  in (j, a, b, d, f, e, g, c) })");
}

TEST_CASE("tangents of integers are float0, printed as JAX prints them") {
  auto f = [](Array x) {
    Array i = Array(3) + 1;
    return std::tuple{x * 2.0, i};
  };
  const auto [out, tangents] = rp::jvp(f, std::tuple{one}, std::tuple{one});
  CHECK(std::get<1>(out).item<int>() == 4);
  CHECK(std::get<1>(tangents).dtype() == rp::float0);
  CHECK(jvp_text(f, one).find("(b'',):float0[]") != std::string::npos);
  CHECK(rp::tangent_type({rp::int32, {2}}) == rp::Type{rp::float0, {2}});
  CHECK(rp::instantiate_zeros({rp::int32, {2}}).shape() == rp::Shape{2});
}

TEST_CASE("stop_gradient stops every order of derivative") {
  auto f = [](Array x) {
    Array s = rp::sin(x);
    s = rp::stop_gradient(s);
    return s * x;
  };
  CHECK(jvp_text(f, rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    _:f32[3] = mul b d
    e:f32[3] = stop_gradient c
    f:f32[3] = mul e a
    g:f32[3] = mul e b
  in (f, g) })");
  CHECK(rp::grad(f)(0.5).item<double>() == doctest::Approx(std::sin(0.5)));
  CHECK(rp::grad(rp::grad(f))(0.5).item<double>() == 0.0);
}
