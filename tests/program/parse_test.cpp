#include "program/parse.h"

#include "api/primitives.h"
#include "program/parse_tree.h"
#include "program/print.h"
#include "program/trace.h"
#include "runtime/compile.h"
#include "test_data.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace reprise;

namespace {

Program parse(std::string_view text) { return parse_program(text, all_primitives()); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// ------------------------------------------------------------------------------------ golden texts
// JAX leaks np.int64(3) into some params; we write 3, but break lines where JAX does.
std::string without_numpy(std::string text) {
  constexpr std::string_view leak = "np.int64(";
  for (std::size_t at = text.find(leak); at != std::string::npos; at = text.find(leak, at)) {
    text.erase(text.find(')', at), 1);
    text.erase(at, leak.size());
  }
  return text;
}

std::size_t end_of_braces(const std::string& text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return text.size();
}

// Every outermost program in the output of a script, with the shared programs before it.
std::vector<std::string> programs_in(const std::string& text) {
  std::vector<std::string> result;
  std::size_t begin = std::string::npos;
  for (std::size_t at = text.find("{ lambda "); at != std::string::npos;
       at = text.find("{ lambda ", at)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    const std::size_t let = text.find("let ", line);
    const bool is_shared = let < at && text.compare(at - 3, 3, " = ") == 0;
    if (begin == std::string::npos) begin = is_shared ? let : at;
    at = end_of_braces(text, at);
    if (is_shared) continue;
    result.push_back(text.substr(begin, at - begin));
    begin = std::string::npos;
  }
  return result;
}

// Dtypes and primitives that only Python has, and texts quoted inside other texts.
bool is_beyond_us(const std::string& text) {
  for (const char* part :
       {"c64[", "f8_", "f4_", "i4[", "u4[", "key<rbg>", "Ref{", "\\n", "debug_print",
        "call_hi_primitive", "optimization_barrier", "random_seed", "random_bits"}) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

void check_round_trip(const std::string& text) {
  std::string printed;
  try {
    printed = to_text(parse(text));
  } catch (const Error& e) {
    printed = e.what();
  }
  CHECK(printed == text);
}

std::string message_of(std::string_view text) {
  try {
    parse(text);
  } catch (const TypeError& e) {
    return e.what();
  }
  return "";
}

const Type f32{float32, {}};

}  // namespace

TEST_CASE("the programs of the golden cases print as they were read") {
  const auto cases = nlohmann::json::parse(read_file(golden_path("remat_cases.json")))["cases"];
  int count = 0;
  for (const auto& c : cases) {
    for (const char* key : {"jaxpr", "fwd", "bwd"}) {
      if (!c.contains(key) || !c[key].is_string()) continue;
      const std::string text = c[key];
      if (is_beyond_us(text)) continue;
      const std::string name = c["name"];
      CAPTURE(name);
      CAPTURE(key);
      check_round_trip(text);
      ++count;
    }
  }
  CHECK(count > 150);
}

TEST_CASE("the programs in JAX's outputs print as they were read") {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(golden_path("jax"))) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".out")) continue;
    // These two print with other options or two programs side by side.
    if (name.starts_with("g11_") || name.starts_with("g18_")) continue;
    for (const std::string& text : programs_in(without_numpy(read_file(file.path())))) {
      if (is_beyond_us(text)) continue;
      CAPTURE(name);
      check_round_trip(text);
      ++count;
    }
  }
  CHECK(count > 400);
}

// ---------------------------------------------------------------------------------------- meaning
TEST_CASE("a parsed program computes") {
  const Program p = parse(
      "{ lambda ; a:f32[2]. let b:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(0,)] a; "
      "c:f32[3] = reduce_sum[axes=(0,) out_sharding=None] b in (c,) }");
  const Arrays out = eval(p, {array({1.0, 2.0})});
  CHECK(out[0].to_vector<float>() == std::vector<float>(3, 3.0f));
}

TEST_CASE("constants become leading inputs") {
  const Program p = parse("{ lambda a:f32[3]; b:f32[]. let  in (b, a) }");
  CHECK(p.num_consts == 1);
  CHECK(p.in_types() == Types{{float32, {3}}, f32});
  CHECK(p.out_types() == Types{f32, {float32, {3}}});
}

TEST_CASE("a shared program is one object, wherever it is defined") {
  const Program p = parse(
      "let f = { lambda ; a:f32[]. let b:f32[] = jit[name=g jaxpr=g] a in (b,) } in\n"
      "let g = { lambda ; c:f32[]. let d:f32[] = sin c in (d,) } in\n"
      "{ lambda ; e:f32[]. let\n"
      "    h:f32[] = jit[name=f jaxpr=f] e\n"
      "    i:f32[] = jit[name=f jaxpr=f] h\n"
      "    j:f32[] = jit[name=g jaxpr=g] i\n"
      "  in (j,) }");
  const auto body = [&](const Equation& e) { return e.params.get<ProgramPtr>("jaxpr"); };
  CHECK(body(p.eqns[0]) == body(p.eqns[1]));
  CHECK(body(body(p.eqns[0])->eqns[0]) == body(p.eqns[2]));
  CHECK(body(p.eqns[2])->name == "g");
}

TEST_CASE("literals of every dtype are read") {
  const Program p = parse(
      "{ lambda ; . let  in (0.10000000149011612:f32[], -inf:f32[], nan:f32[], 1e-05:f64[], "
      "-3:i8[], "
      "200:u8[], 18446744073709551615:u64[], True:bool[], (b'',):float0[]) }");
  CHECK(p.out[0].literal == make_literal(float32, 0.1f));
  CHECK(p.out[1].literal.real == -INFINITY);
  CHECK(std::isnan(p.out[2].literal.real));
  CHECK(p.out[3].literal.real == 1e-5);
  CHECK(p.out[4].literal.integer == -3);
  CHECK(p.out[5].literal.natural == 200);
  CHECK(p.out[6].literal.natural == ~std::uint64_t{0});
  CHECK(p.out[7].literal.integer == 1);
  CHECK(p.out[8].literal.dtype == float0);
}

TEST_CASE("types of keys and of host memory are read") {
  const Program p = parse("{ lambda ; a:key<fry>[2] b:f32<host>[3,0] c:float0[]. let  in () }");
  CHECK(p.type(0) == Type{Dtype::key, {2}});
  CHECK(p.type(1) == Type{float32, {3, 0}, false, MemorySpace::host});
  CHECK(p.type(2) == Type{float0, {}});
}

TEST_CASE("what the text hides is computed: weak types") {
  const Program p = parse(
      "{ lambda ; a:i32[]. let\n"
      "    b:f32[] = convert_element_type[new_dtype=float32 weak_type=True] a\n"
      "  in (b,) }");
  CHECK(p.type(1).weak_type);
  CHECK_FALSE(p.type(0).weak_type);
}

TEST_CASE("values that look like Python become params") {
  constexpr Forms any = ~Forms{0};
  CHECK(parse_attr(any, "None") == Attr(None{}));
  CHECK(parse_attr(any, "True") == Attr(true));
  CHECK(parse_attr(any, "-2") == Attr(std::int64_t{-2}));
  CHECK(parse_attr(any, "1e-05") == Attr(1e-5));
  CHECK(parse_attr(any, "bfloat16") == Attr(bfloat16));
  CHECK(parse_attr(any, "()") == Attr(Ints{}));
  CHECK(parse_attr(any, "(0,)") == Attr(Ints{0}));
  CHECK(parse_attr(any, "[0]") == Attr(Ints{0}));
  CHECK(parse_attr(any, "(1, 0)") == Attr(Ints{1, 0}));
  CHECK(parse_attr(any, "((-1, 0, 0),)") == Attr(std::vector<Ints>{{-1, 0, 0}}));
  CHECK(parse_attr(any, "(([1], [0]), ([], []))") == Attr(DotDims{{1}, {0}, {}, {}}));
}

TEST_CASE("a value is read as one of the forms that its rule allows") {
  CHECK(parse_attr(form::rows, "()") == Attr(std::vector<Ints>{}));
  CHECK(parse_attr(form::text, "float32") == Attr(std::string("float32")));
  CHECK(parse_attr(form::object, "True") == Attr(std::string("True")));
  CHECK_FALSE(parse_attr(form::integer, "(0,)"));
  CHECK_FALSE(parse_attr(form::ints, "0"));
  CHECK_FALSE(parse_attr(form::none | form::dtype, "True"));
  CHECK_FALSE(parse_attr(form::dims, "((1,), (0,))"));
  for (const char* text :
       {"GatherScatterMode.CLIP", "frozenset({'a', 'b'})", "(0)", "(True, False)", "[False]",
        "(99999999999999999999,)", "((((1,),),),)", "(1, 2", "<function f at 0xXXXX>"}) {
    CHECK(parse_attr(~Forms{0}, text) == Attr(std::string(text)));
  }
}

TEST_CASE("numbers of numpy are numbers") {
  std::int64_t count = 0;
  CHECK(without_numpy("((np.int64(0), 1), (np.float32(-2.5), np.x))", count) ==
        "((0, 1), (-2.5, np.x))");
  CHECK(count == 2);
  CHECK(without_numpy("np.int64(f(1)) np. np.int64(", count) == "np.int64(f(1)) np. np.int64(");
  const std::string text =
      "{ lambda ; a:f32[2,3]. let b:f32[3] = reduce_sum[axes=(np.int64(0),) out_sharding=None] a "
      "in (b,) }";
  CHECK(parse(text).eqns[0].params.get<Ints>("axes") == Ints{0});
}

TEST_CASE("params that JAX added later may be missing or say nothing") {
  const Program p = parse(
      "{ lambda ; a:f32[2]. let b:f32[2] = sin[accuracy=None] a; c:f32[2,1] = "
      "reshape[new_sizes=(2, 1)] b\n"
      "d:f32[] = reduce_sum[axes=(0, 1)] c in (d,) }");
  CHECK(to_text(p) ==
        "{ lambda ; a:f32[2]. let\n    b:f32[2] = sin a\n"
        "    c:f32[2,1] = reshape[dimensions=None new_sizes=(2, 1) sharding=None] b\n"
        "    d:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] c\n  in (d,) }");
}

TEST_CASE("the shape of a scan follows from its types") {
  const Program p = parse(
      "{ lambda ; a:f32[] b:f32[] c:f32[5]. let\n"
      "    d:f32[] e:f32[5] = scan[\n"
      "      ft_in=((None,), (None,), (None,))\n"
      "      ft_out=((None,), (None,))\n"
      "      jaxpr={ lambda ; f:f32[] g:f32[] h:f32[]. let i:f32[] = mul f h; j:f32[] = add g i in "
      "(j, g) }\n"
      "      length=5\n      reverse=False\n      unroll=1\n    ] a b c\n  in (d, e) }");
  CHECK(p.eqns[0].params.get<std::int64_t>("num_consts") == 1);
  CHECK(p.eqns[0].params.get<std::int64_t>("num_carry") == 1);
}

TEST_CASE("reshape with dimensions turns its operand first") {
  const std::string text =
      "{ lambda ; a:f32[2,3]. let\n"
      "    b:f32[6] = reshape[dimensions=(1, 0) new_sizes=(6,) sharding=None] a\n  in (b,) }";
  const Program p = parse(text);
  CHECK(to_text(p) == text);
  const Array a = array({{1, 2, 3}, {4, 5, 6}}, float32);
  const std::vector<float> turned{1, 4, 2, 5, 3, 6};
  CHECK(eval(p, {a})[0].to_vector<float>() == turned);
  CHECK(compile(p)->run({a})[0].to_vector<float>() == turned);
}

// ------------------------------------------------------------------------------------ odd but
// legal
TEST_CASE("variables may be called like words of the language") {
  for (const char* text :
       {"{ lambda ; in:f32[]. let let:f32[] = sin in; lambda:f32[] = mul in in in (lambda,) }",
        "{ lambda ; a:f32[]. let\n    inf:f32[] = mul a inf:f32[]\n    nan:f32[] = sin inf\n  in "
        "(nan,) }",
        "{ lambda ; in:float0[]. let  in (in, (b'',):float0[]) }"}) {
    CHECK_NOTHROW(parse(text));
  }
}

TEST_CASE("results that nobody reads are all called _") {
  const std::string text =
      "{ lambda ; a:f32[]. let\n"
      "    _:f32[] _:f32[] b:f32[] = jit[\n"
      "      name=f\n"
      "      jaxpr={ lambda ; a:f32[]. let\n"
      "          _:f32[] = sin a\n"
      "          _:f32[] = cos a\n"
      "          b:f32[] = exp a\n"
      "        in (_, _, b) }\n"
      "    ] a\n"
      "  in (b,) }";
  CHECK(to_text(parse(text)) == text);
}

TEST_CASE("white space between words is free") {
  const Program p = parse(
      "\n { lambda ;a:f32[3]\n  . let\n\n b:f32[3]=sin\n   a;c:f32[3] = mul b 2.0:f32[] in ( c , ) "
      "}\n ");
  CHECK(to_text(p) ==
        "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }");
}

// ------------------------------------------------------------------------------------------ errors
TEST_CASE("an unknown primitive is named with its place") {
  CHECK(message_of("{ lambda ; a:f32[]. let\n    b:f32[] = frobnicate[x=1] a\n  in (b,) }") ==
        "parse: an unknown primitive, got `frobnicate` (line 2, column 5)");
}

TEST_CASE("an error tells its place and its reason apart") {
  try {
    parse("{ lambda ; a:f32[]. let\n    b:f32[] = sin z\n  in (b,) }");
    FAIL("z is not bound");
  } catch (const ParseError& error) {
    CHECK(error.line == 2);
    CHECK(error.column == 19);
    CHECK(error.reason == "a variable is not bound, got `z`");
  }
}

TEST_CASE("equations know their places in a file, those of inner programs too") {
  const Program p = parse_program(
      "{ lambda ; a:f32[]. let\n    b:f32[] = jit[name=f jaxpr={ lambda ; c:f32[]. let\n"
      "        d:f32[] = sin c\n      in (d,) }] a\n  in (b,) }",
      all_primitives(), "f.jaxpr");
  CHECK(to_string(p.eqns[0].at) == "f.jaxpr:2:5");
  CHECK(to_string(p.eqns[0].params.get<ProgramPtr>("jaxpr")->eqns[0].at) == "f.jaxpr:3:9");
  CHECK(parse("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }").eqns[0].at.line == 0);
}

TEST_CASE("malformed text is an error with its place") {
  CHECK(message_of("") == "parse: `{` is expected (line 1, column 1)");
  CHECK(message_of("{ lambda ; a. let  in (a,) }") ==
        "parse: `:` and a type are expected (line 1, column 13)");
  CHECK(message_of("{ lambda ; a:f33[]. let  in (a,) }") ==
        "parse: a known dtype is expected, got `f33` (line 1, column 14)");
  CHECK(message_of("{ lambda ; a:f32[3. let  in (a,) }") ==
        "parse: `]` is expected (line 1, column 19)");
  CHECK(message_of("{ lambda ; a:f32[]. let  in (a,) } x") ==
        "parse: the end of the text is expected (line 1, column 36)");
  CHECK(message_of("{ lambda ; a:f32[]. let b:f32[] = sin[x=1 a in (b,) }") ==
        "parse: `]` is expected (line 1, column 54)");
  CHECK(message_of("{ lambda ; a:f32[]. let b:f32[] = sin a") ==
        "parse: an equation is expected (line 1, column 40)");
}

TEST_CASE("variables are bound once, before they are read") {
  CHECK(message_of("{ lambda ; a:f32[] a:f32[]. let  in () }") ==
        "parse: a variable is bound twice, got `a` (line 1, column 20)");
  CHECK(message_of("{ lambda ; a:f32[]. let b:f32[] = sin c in (b,) }") ==
        "parse: a variable is not bound, got `c` (line 1, column 39)");
  CHECK(
      message_of(
          "{ lambda ; a:f32[]. let _:f32[] = sin a; _:f32[] = cos a; b:f32[] = exp _ in (b,) }") ==
      "parse: `_` must stand for one variable where it is read (line 1, column 73)");
}

TEST_CASE("an equation must have the types it computes") {
  CHECK(message_of("{ lambda ; a:f32[3]. let b:f32[4] = sin a in (b,) }") ==
        "parse: sin: the results have other types, got f32[4] for f32[3] (line 1, column 26)");
  CHECK(message_of("{ lambda ; a:f32[3]. let b:f32[3] c:f32[3] = sin a in (b,) }") ==
        "parse: sin: the results have other types, got 2 results for 1 (line 1, column 26)");
  CHECK(message_of("{ lambda ; a:f32[3]. let b:f32[] = reduce_sum a in (b,) }") ==
        "parse: reduce_sum: the param axes is missing, got no params (line 1, column 26)");
}

TEST_CASE("every param is checked when it is read") {
  CHECK(
      message_of(
          "{ lambda ; a:f32[3]. let b:f32[] = reduce_sum[axes=0 out_sharding=None] a in (b,) }") ==
      "parse: reduce_sum: the param axes must be a tuple of integers, got 0 (line 1, column 47)");
  CHECK(message_of("{ lambda ; a:f32[3]. let b:f32[3] = sin[speed=fast] a in (b,) }") ==
        "parse: sin: there is no param speed, got speed=fast (line 1, column 41)");
  CHECK(message_of("{ lambda ; a:i32[]. let b:f32[] = cond[branches=()] a in (b,) }") ==
        "parse: cond: the param branches must be a tuple of programs, got () (line 1, column 40)");
  CHECK(message_of("{ lambda ; a:f32[]. let b:f32[] = remat2[jaxpr=3] a in (b,) }") ==
        "parse: a program is not defined, got `3` (line 1, column 48)");
  CHECK_NOTHROW(
      parse("{ lambda ; a:f32[]. let b:f32[] = remat2[jaxpr={ lambda ; c:f32[]. let  in (c,) }] a "
            "in (b,) }"));
  CHECK(message_of(
            "{ lambda ; a:f32[]. let b:f32[] = remat2[jaxpr={ lambda ; c:f32[]. let  in (c,) } "
            "prevent_cse=3] a in (b,) }") ==
        "parse: remat2: the param prevent_cse must be True or False or a text that is known here, "
        "got 3 "
        "(line 1, column 25)");
}

TEST_CASE("every primitive refuses any param of another form") {
  for (const Primitive* prim : all_primitives()) {
    for (const ParamRule& rule : prim->param_rules) {
      if (rule.otherwise == unused || (rule.forms & (form::text | form::object)) != 0) continue;
      CAPTURE(prim->name);
      CAPTURE(rule.key);
      const std::string text =
          str("{ lambda ; a:f32[2]. let b:f32[2] = ", prim->name, "[", rule.key, "=what]",
              prim->arity == 0 ? "" : " a", prim->arity == 2 ? " a" : "", " in (b,) }");
      const bool is_program = (rule.forms & form::program) != 0;
      CHECK(message_of(text).starts_with(
          is_program ? "parse: a program is not defined"
                     : str("parse: ", prim->name, ": the param ", rule.key)));
    }
  }
}

TEST_CASE("an equation must have as many operands as its primitive takes") {
  Primitive half{"half", Kind::elementwise};
  half.arity = 1;
  const Primitive* const table[] = {&half};
  CHECK_NOTHROW(parse_program("{ lambda ; a:f32[]. let b:f32[] = half a in (b,) }", table));
  CHECK_THROWS_WITH_AS(parse_program("{ lambda ; a:f32[]. let b:f32[] = half a a in (b,) }", table),
                       "parse: half: the number of operands must be 1, got 2 (line 1, column 25)",
                       TypeError);
}

TEST_CASE("shared programs are defined once, used, and not in a circle") {
  CHECK(message_of("{ lambda ; . let jit[name=f jaxpr=f]  in () }") ==
        "parse: a program is not defined, got `f` (line 1, column 35)");
  CHECK(message_of("let f = { lambda ; . let  in () } in { lambda ; . let  in () }") ==
        "parse: nobody uses the program `f` (line 1, column 9)");
  CHECK(message_of("let f = { lambda ; . let  in () } in let f = { lambda ; . let  in () } in\n"
                   "{ lambda ; . let  in () }") ==
        "parse: a name is defined twice, got `f` (line 1, column 46)");
  CHECK(message_of("let f = { lambda ; . let jit[name=f jaxpr=f]  in () } in\n"
                   "{ lambda ; . let jit[name=f jaxpr=f]  in () }") ==
        "parse: a program contains itself, got `f` (line 1, column 43)");
}

TEST_CASE("numbers must fit their type") {
  CHECK(message_of("{ lambda ; . let  in (300:u8[],) }") ==
        "parse: a number of type u8[] is expected, got 300 (line 1, column 23)");
  for (const char* atom : {"-1:u8[]", "1.5:i32[]", "1:bool[]", "1e999:f32[]",
                           "99999999999999999999:i64[]", "abc:f32[]", "1:f32[2]", "1:key<fry>[]"}) {
    CAPTURE(atom);
    CHECK_THROWS_AS(parse(str("{ lambda ; . let  in (", atom, ",) }")), TypeError);
  }
}

TEST_CASE("huge dimensions are errors") {
  for (const char* type : {"f32[99999999999999999999]", "f32[4294967296,4294967296]", "f32[-1]"}) {
    CAPTURE(type);
    CHECK_THROWS_AS(parse(str("{ lambda ; a:", type, ". let  in () }")), TypeError);
  }
}

TEST_CASE("deep nesting is an error, not a crash") {
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "{ lambda ; . let jit[name=f jaxpr=";
  CHECK(message_of(nested).starts_with("parse: the programs are nested too deeply"));
  CHECK_THROWS_AS(parse("{ lambda ; . let jit[a=" + std::string(1000000, '(')), TypeError);
  std::string chain;
  for (int i = 0; i < 1000; ++i) {
    chain += str("let f", i, " = { lambda ; . let jit[name=f jaxpr=f", i + 1, "]  in () } in\n");
  }
  chain +=
      "let f1000 = { lambda ; . let  in () } in\n{ lambda ; . let jit[name=f jaxpr=f0]  in () }";
  CHECK(message_of(chain).starts_with("parse: the programs are nested too deeply"));
}

TEST_CASE("every prefix of a program is an error") {
  const std::string text =
      "let f = { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) } in\n"
      "{ lambda ; c:f32[]. let d:f32[] = jit[name=f jaxpr=f] c; e:f32[] = jit[name=f jaxpr=f] d in "
      "(e,) }";
  CHECK_NOTHROW(parse(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    CHECK_THROWS_AS(parse(text.substr(0, size)), TypeError);
  }
}
