// The expected texts are JAX's for the same programs.
#include "program/print.h"

#include "program/primitive.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace reprise;

namespace {

std::vector<Param> name_first(const Params& params) {
  std::vector<Param> result{{"name", *params.find("name")}};
  for (const Param& p : params.items()) {
    if (std::string_view(p.key) != "name") result.push_back(p);
  }
  return result;
}

// Records that can only be printed.
const Primitive sin_like{"sin", Kind::elementwise}, cos_like{"cos", Kind::elementwise},
    mul_like{"mul", Kind::elementwise}, iota_like{"iota", Kind::constant},
    remat_like{"remat2", Kind::call}, cond_like{"cond", Kind::call},
    effect_like{"effect", Kind::call};
const Primitive jit_like = [] {
  Primitive p{"jit", Kind::call};
  p.printed_params = name_first;
  return p;
}();

const Type f32{float32, {}};

struct Builder {
  Program p;
  Var input(const Type& t = f32) {
    p.in.push_back(p.fresh(t));
    return p.in.back();
  }
  std::vector<Var> equation(const Primitive& prim, std::vector<Atom> in, const Types& out,
                            Params params = {}) {
    Equation e{&prim, std::move(params), std::move(in), {}, {}};
    for (const Type& t : out) e.out.push_back(p.fresh(t));
    p.eqns.push_back(e);
    return e.out;
  }
  Var equation(const Primitive& prim, Var in, Params params = {}) {
    return equation(prim, {Atom::of(in)}, {p.type(in)}, std::move(params))[0];
  }
  ProgramPtr share() const { return std::make_shared<const Program>(p); }
};

Program chain(int length, const Primitive& prim = sin_like) {
  Builder b;
  Var v = b.input();
  for (int i = 0; i < length; ++i) v = b.equation(prim, v);
  b.p.out = {Atom::of(v)};
  return b.p;
}
ProgramPtr shared_chain(int length, const Primitive& prim = sin_like) {
  return std::make_shared<const Program>(chain(length, prim));
}
Program calls(const std::vector<ProgramPtr>& bodies, const std::vector<std::string>& names) {
  Builder b;
  Var v = b.input();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    v = b.equation(jit_like, v, {{"name", names[i]}, {"jaxpr", bodies[i]}});
  }
  b.p.out = {Atom::of(v)};
  return b.p;
}
Atom number(Dtype dtype, double value) { return Atom::of(make_literal(dtype, value)); }

}  // namespace

TEST_CASE("a short program is one line") {
  CHECK(to_text(chain(2)) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }");
}

TEST_CASE("a program without equations has two spaces") {
  CHECK(to_text(chain(0)) == "{ lambda ; a:f32[]. let  in (a,) }");
  CHECK(to_text(Program{}) == "{ lambda ; . let  in () }");
}

TEST_CASE("constants are printed before the semicolon") {
  Builder b;
  b.input({float32, {3}});
  b.input({bool_, {}});
  b.p.num_consts = 1;
  b.p.out = {Atom::of(0), Atom::of(1)};
  CHECK(to_text(b.p) == "{ lambda a:f32[3]; b:bool[]. let  in (a, b) }");
}

TEST_CASE("a long program has one equation per line") {
  CHECK(to_text(chain(4)) ==
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = sin a\n"
        "    c:f32[] = sin b\n"
        "    d:f32[] = sin c\n"
        "    e:f32[] = sin d\n"
        "  in (e,) }");
}

TEST_CASE("long lists of variables fill their lines") {
  Builder b;
  for (int i = 0; i < 12; ++i) b.input({float32, {2, 3}});
  CHECK(to_text(b.p) ==
        "{ lambda ; a:f32[2,3] b:f32[2,3] c:f32[2,3] d:f32[2,3] e:f32[2,3] f:f32[2,3] g:f32[2,3]\n"
        "    h:f32[2,3] i:f32[2,3] j:f32[2,3] k:f32[2,3] l:f32[2,3]. let\n"
        "    \n"
        "  in () }");
}

TEST_CASE("an equation without operands ends with a space") {
  Builder b;
  const Var v = b.equation(iota_like, {}, {{int32, {3}}},
                           {{"shape", Ints{3}},
                            {"dimension", std::int64_t{0}},
                            {"sharding", None{}},
                            {"dtype", int32}})[0];
  b.p.out = {Atom::of(v)};
  CHECK(to_text(b.p) ==
        "{ lambda ; . let\n"
        "    a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,) sharding=None] \n"
        "  in (a,) }");
}

TEST_CASE("an equation without results prints no equals sign") {
  Builder b;
  const Var v = b.input();
  b.equation(effect_like, {Atom::of(v)}, {});
  CHECK(to_text(b.p) == "{ lambda ; a:f32[]. let effect a in () }");
}

TEST_CASE("variables are lettered in base 26 without leading a") {
  const std::string text = to_text(chain(700));
  CHECK(text.find("\n    z:f32[] = sin y\n    ba:f32[] = sin z\n") != std::string::npos);
  CHECK(text.find("\n    ca:f32[] = sin bz\n") != std::string::npos);
  CHECK(text.find("\n    baa:f32[] = sin zz\n") != std::string::npos);
}

TEST_CASE("a variable that nobody reads is an underscore, in the outermost program only") {
  Builder inner;
  inner.equation(sin_like, inner.input());
  Builder b;
  const Var v = b.input();
  b.equation(sin_like, v);
  b.equation(remat_like, {Atom::of(v)}, {}, {{"jaxpr", inner.share()}});
  CHECK(to_text(b.p) ==
        "{ lambda ; a:f32[]. let\n"
        "    _:f32[] = sin a\n"
        "    remat2[jaxpr={ lambda ; b:f32[]. let c:f32[] = sin b in () }] a\n"
        "  in () }");
}

TEST_CASE("literals carry their type") {
  Builder b;
  const Var v = b.input();
  b.equation(mul_like, {Atom::of(v), number(float32, 0.1)}, {f32});
  b.p.out = {number(int32, 3), number(bool_, 1), number(float32, -INFINITY)};
  CHECK(to_text(b.p) ==
        "{ lambda ; a:f32[]. let\n"
        "    _:f32[] = mul a 0.10000000149011612:f32[]\n"
        "  in (3:i32[], True:bool[], -inf:f32[]) }");
}

TEST_CASE("a program used twice is printed once, before the rest") {
  Builder b;
  const ProgramPtr body = shared_chain(2);
  const Params params{
      {"jaxpr", body}, {"prevent_cse", true}, {"policy", None{}}, {"differentiated", false}};
  const Var v = b.equation(remat_like, b.input(), params);
  b.p.out = {Atom::of(b.equation(remat_like, v, params))};
  CHECK(to_text(b.p) ==
        "let jaxpr = { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) } in\n"
        "{ lambda ; d:f32[]. let\n"
        "    e:f32[] = remat2[\n"
        "      differentiated=False\n"
        "      jaxpr=jaxpr\n"
        "      policy=None\n"
        "      prevent_cse=True\n"
        "    ] d\n"
        "    f:f32[] = remat2[\n"
        "      differentiated=False\n"
        "      jaxpr=jaxpr\n"
        "      policy=None\n"
        "      prevent_cse=True\n"
        "    ] e\n"
        "  in (f,) }");
}

TEST_CASE("equal programs that are different objects are not shared") {
  const std::string text = to_text(calls({shared_chain(1), shared_chain(1)}, {"f", "f"}));
  CHECK(text.find("let f") == std::string::npos);
}

TEST_CASE("what a shared program contains is shared too, and names do not clash") {
  const auto four = std::make_shared<const Program>(calls({shared_chain(1)}, {"<lambda>"}));
  CHECK(to_text(calls({four, four}, {"<lambda>", "<lambda>"})) ==
        "let lambda = { lambda ; a:f32[]. let\n"
        "    b:f32[] = jit[name=<lambda> jaxpr=lambda1] a\n"
        "  in (b,) } in\n"
        "let lambda1 = { lambda ; c:f32[]. let d:f32[] = sin c in (d,) } in\n"
        "{ lambda ; e:f32[]. let\n"
        "    f:f32[] = jit[name=<lambda> jaxpr=lambda] e\n"
        "    g:f32[] = jit[name=<lambda> jaxpr=lambda] f\n"
        "  in (g,) }");
}

TEST_CASE("a program with more than ten equations is printed before the rest") {
  CHECK(to_text(calls({shared_chain(10)}, {"long"})).find("let long") == std::string::npos);
  const std::string text = to_text(calls({shared_chain(11)}, {"long"}));
  CHECK(text.starts_with("let long = { lambda ; a:f32[]. let\n    b:f32[] = sin a\n"));
  CHECK(
      text.ends_with("  in (l,) } in\n"
                     "{ lambda ; m:f32[]. let n:f32[] = jit[name=long jaxpr=long] m in (n,) }"));
}

TEST_CASE("a variable never takes the name of a shared program") {
  const ProgramPtr body = shared_chain(1);
  CHECK(to_text(calls({body, body}, {"b", "b"})) ==
        "let b = { lambda ; a:f32[]. let c:f32[] = sin a in (c,) } in\n"
        "{ lambda ; d:f32[]. let\n"
        "    e:f32[] = jit[name=b jaxpr=b] d\n"
        "    f:f32[] = jit[name=b jaxpr=b] e\n"
        "  in (f,) }");
}

TEST_CASE("programs that double at each level print in linear time") {
  ProgramPtr body = shared_chain(1);
  for (int level = 0; level < 60; ++level) {
    body = std::make_shared<const Program>(calls({body, body}, {"f", "f"}));
  }
  CHECK(to_text(*body).starts_with("let f = "));
}

TEST_CASE("the variables of a jit take the names of the values they stand for") {
  CHECK(to_text(calls({shared_chain(2)}, {"f"})) ==
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = jit[\n"
        "      name=f\n"
        "      jaxpr={ lambda ; a:f32[]. let c:f32[] = sin a; b:f32[] = sin c in (b,) }\n"
        "    ] a\n"
        "  in (b,) }");
}

TEST_CASE("a jit may get one value twice and have results that nobody reads") {
  Builder inner;
  const Var x = inner.input(), y = inner.input();
  inner.p.out = {Atom::of(inner.equation(sin_like, x)), Atom::of(inner.equation(cos_like, y))};
  Builder b;
  const Atom a = Atom::of(b.input());
  const std::vector<Var> out = b.equation(
      jit_like, {a, a}, {f32, f32}, {{"name", std::string("<lambda>")}, {"jaxpr", inner.share()}});
  b.p.out = {Atom::of(out[0])};
  CHECK(to_text(b.p) ==
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] _:f32[] = jit[\n"
        "      name=<lambda>\n"
        "      jaxpr={ lambda ; a:f32[] c:f32[]. let\n"
        "          b:f32[] = sin a\n"
        "          _:f32[] = cos c\n"
        "        in (b, _) }\n"
        "    ] a a\n"
        "  in (b,) }");
}

TEST_CASE("a tuple of programs has a line for each") {
  Builder b;
  const Var c = b.input({int32, {}}), v = b.input();
  const Var d = b.equation(cond_like, {Atom::of(c), Atom::of(v)}, {f32},
                           {{"branches", Programs{shared_chain(1, cos_like), shared_chain(2)}}})[0];
  b.p.out = {Atom::of(d)};
  CHECK(to_text(b.p) ==
        "{ lambda ; a:i32[] b:f32[]. let\n"
        "    c:f32[] = cond[\n"
        "      branches=(\n"
        "        { lambda ; d:f32[]. let e:f32[] = cos d in (e,) }\n"
        "        { lambda ; f:f32[]. let g:f32[] = sin f; h:f32[] = sin g in (h,) }\n"
        "      )\n"
        "    ] a b\n"
        "  in (c,) }");
}

TEST_CASE("params are sorted, empty tuples are short, addresses are hidden") {
  Builder b;
  b.equation(remat_like, {}, {},
             {{"policy", std::string("<function f at 0x7f3A>")},
              {"axes", Ints{}},
              {"branches", Programs{}}});
  CHECK(to_text(b.p, {.width = 100}) ==
        "{ lambda ; . let remat2[axes=() branches=() policy=<function f at 0xXXXX>]  in () }");
}

TEST_CASE("options: width, types, places") {
  CHECK(to_text(chain(2), {.print_shapes = false}) ==
        "{ lambda ; a. let b = sin a; c = sin b in (c,) }");
  Program p = chain(2);
  p.eqns[0].at = {"/home/user/train.cpp", "loss", 12, 9};
  CHECK(to_text(p, {.width = 40, .source_info = true}) ==
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = sin a     # train.cpp:12:9 (loss)\n"
        "    c:f32[] = sin b     # \n"
        "  in (c,) }");
}

TEST_CASE("a broken program prints too, for the message of the checker") {
  Program p = chain(1);
  p.eqns[0].in = {Atom::of(77)};
  p.eqns[0].out = {99};
  p.num_consts = 5;
  CHECK(to_text(p) == "{ lambda a:f32[]; . let ? = sin ? in (b,) }");
}

TEST_CASE("a hundred thousand equations print") {
  const std::string text = to_text(chain(100000));
  CHECK(text.size() > 2000000);
  CHECK(text.ends_with(" }"));
}
