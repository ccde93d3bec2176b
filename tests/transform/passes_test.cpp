// dce, cse, simplify and inline, as programs before and after.
#include "program/print.h"
#include "program/program.h"
#include "transform/cse.h"
#include "transform/dce.h"
#include "transform/inline.h"
#include "transform/simplify.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;

namespace {

rp::Program parsed(const char* text) { return *rp::parse_jaxpr(text).program(); }

}  // namespace

TEST_CASE("dce keeps only what the wanted outputs read") {
  const rp::Program p = parsed(
      "{ lambda ; a:f32[3] b:f32[3]. let\n"
      "    c:f32[3] = sin a\n"
      "    d:f32[3] = cos b\n"
      "    e:f32[3] = mul c a\n"
      "  in (e, d) }");
  const rp::DceProgram live = rp::dce(p, {true, false});
  CHECK(rp::to_text(live.program) ==
        "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = sin a; d:f32[3] = mul c a in (d,) }");
  CHECK(live.used_inputs == std::vector<bool>{true, false});
}

TEST_CASE("dce shrinks the body of a jit call") {
  auto inner = rp::jit(
      [](Array x, Array y) {
        return std::pair{rp::sin(x), rp::cos(y)};
      },
      {.name = "f"});
  auto f = [&](Array x, Array y) { return inner(x, y).first; };
  const rp::Program p = *rp::make_jaxpr(f)(rp::ones({3}), rp::ones({3})).program();
  const rp::DceProgram live = rp::dce(p, {true});
  CHECK(rp::to_text(live.program) ==
        "{ lambda ; a:f32[3] b:f32[3]. let\n"
        "    c:f32[3] = jit[\n"
        "      name=f\n"
        "      jaxpr={ lambda ; a:f32[3]. let c:f32[3] = sin a in (c,) }\n"
        "    ] a\n"
        "  in (c,) }");
  CHECK(live.used_inputs == std::vector<bool>{true, false});
}

TEST_CASE("dce of a scan drops carries that nothing needs") {
  auto body = [](std::pair<Array, Array> c, rp::None) {
    Array first = rp::sin(c.first);
    Array second = rp::cos(c.second);
    return std::pair{std::pair{first, second}, rp::none};
  };
  auto f = [&](Array x, Array y) {
    return rp::scan(body, std::pair{x, y}, rp::none, {.length = 4}).first.first;
  };
  const rp::Program p = *rp::make_jaxpr(f)(rp::ones({3}), rp::ones({3})).program();
  const rp::DceProgram live = rp::dce(p, {true});
  CHECK(live.used_inputs == std::vector<bool>{true, false});
  CHECK(live.program.eqns[0].params.get<std::int64_t>("num_carry") == 1);
}

TEST_CASE("cse merges equal equations and not those with other params") {
  const rp::Program p = parsed(
      "{ lambda ; a:f32[3,3]. let\n"
      "    b:f32[3,3] = sin a\n"
      "    c:f32[3,3] = sin a\n"
      "    d:f32[3] = reduce_sum[axes=(0,) out_sharding=None] b\n"
      "    e:f32[3] = reduce_sum[axes=(1,) out_sharding=None] c\n"
      "    f:f32[3] = reduce_sum[axes=(0,) out_sharding=None] c\n"
      "  in (d, e, f) }");
  CHECK(rp::to_text(rp::cse(p)) ==
        "{ lambda ; a:f32[3,3]. let\n"
        "    b:f32[3,3] = sin a\n"
        "    c:f32[3] = reduce_sum[axes=(0,) out_sharding=None] b\n"
        "    d:f32[3] = reduce_sum[axes=(1,) out_sharding=None] b\n"
        "  in (c, d, c) }");
}

TEST_CASE("simplify removes what changes nothing and computes scalar constants") {
  const rp::Program p = parsed(
      "{ lambda ; a:f32[2,3]. let\n"
      "    b:f32[2,3] = mul a 1.0:f32[]\n"
      "    c:f32[3,2] = transpose[permutation=(1, 0)] b\n"
      "    d:f32[2,3] = transpose[permutation=(1, 0)] c\n"
      "    e:f32[] = add 1.0:f32[] 2.0:f32[]\n"
      "    f:f32[2,3] = mul d e\n"
      "    g:f32[2,3] = name[name=h] f\n"
      "    h:f32[2,3] = neg g\n"
      "    i:f32[2,3] = neg h\n"
      "  in (i,) }");
  const rp::Program simple = rp::simplify(p);
  CHECK(rp::to_text(rp::dce(simple, {true}).program) ==
        "{ lambda ; a:f32[2,3]. let b:f32[2,3] = mul a 3.0:f32[] in (b,) }");
}

TEST_CASE("simplify keeps additions of zero, which change the sign of zero") {
  const rp::Program p = parsed("{ lambda ; a:f32[3]. let b:f32[3] = add a 0.0:f32[] in (b,) }");
  CHECK(rp::simplify(p).eqns.size() == 1);
}

TEST_CASE("inline opens calls at any depth and leaves loops") {
  auto inner = rp::jit([](Array x) { return rp::sin(x); }, {.name = "inner"});
  auto outer = rp::jit([inner](Array x) { return rp::cos(inner(x)); }, {.name = "outer"});
  auto f = [&](Array x) {
    Array y = outer(x);
    return rp::scan(
               [&](Array c, rp::None) {
                 return std::pair{outer(c), rp::none};
               },
               y, rp::none, {.length = 2})
        .first;
  };
  const rp::Program p = *rp::make_jaxpr(f)(rp::ones({3})).program();
  CHECK(rp::to_text(rp::inline_calls(p)) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = sin a\n"
        "    c:f32[3] = cos b\n"
        "    d:f32[3] = scan[\n"
        "      jaxpr={ lambda ; e:f32[3]. let\n"
        "          f:f32[3] = sin e\n"
        "          g:f32[3] = cos f\n"
        "        in (g,) }\n"
        "      length=2\n"
        "      num_carry=1\n"
        "      num_consts=0\n"
        "      reverse=False\n"
        "      unroll=1\n"
        "    ] c\n"
        "  in (d,) }");
}

TEST_CASE("passes keep values") {
  auto f = [](Array x, Array y) {
    Array a = rp::sin(x * y);
    Array b = rp::sin(x * y);
    Array c = rp::nn::silu(a + b * 1.0);
    return rp::sum(c);
  };
  const Array x = rp::linspace(0.1, 1.0, 5), y = rp::linspace(-1.0, 2.0, 5);
  const rp::Jaxpr j = rp::make_jaxpr(rp::grad<0, 1>(f))(x, y);
  rp::Program p = rp::inline_calls(*j.program());
  p = rp::simplify(p);
  p = rp::cse(p);
  p = rp::dce(p, std::vector<bool>(p.out.size(), true)).program;
  CHECK(p.eqns.size() < j.size());
  const rp::Jaxpr passed(std::make_shared<const rp::Program>(p), {});
  const rp::Arrays before = j.eval({x, y}), after = passed.eval({x, y});
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].to_vector<float>() == after[i].to_vector<float>());
  }
}
