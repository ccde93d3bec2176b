#include "program/params.h"

#include "program/program.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace reprise;

namespace {

class Rule : public OpaqueParam {
 public:
  explicit Rule(std::string text) : text_(std::move(text)) {}
  std::string text() const override { return text_; }

 private:
  std::string text_;
};
class OtherRule : public Rule {
  using Rule::Rule;
};
template <class T>
OpaquePtr rule(const char* text) {
  return std::make_shared<const T>(text);
}

}  // namespace

TEST_CASE("values print as Python prints them") {
  CHECK(python_text(None{}) == "None");
  CHECK(python_text(true) == "True");
  CHECK(python_text(std::int64_t{-3}) == "-3");
  CHECK(python_text(0.1) == "0.1");
  CHECK(python_text(std::string("relu")) == "relu");
  CHECK(python_text(float32) == "float32");
  CHECK(python_text(Ints{}) == "()");
  CHECK(python_text(Ints{0}) == "(0,)");
  CHECK(python_text(Ints{1, 0}) == "(1, 0)");
  CHECK(python_text(std::vector<Ints>{{0, 1, 0}}) == "((0, 1, 0),)");
  CHECK(python_text(std::vector<Ints>{{0, 1}, {2, 3}}) == "((0, 1), (2, 3))");
  CHECK(python_text(DotDims{{1}, {0}, {}, {}}) == "(([1], [0]), ([], []))");
  CHECK(python_text(rule<Rule>("my_jvp")) == "my_jvp");
  CHECK(python_text(OpaquePtr()) == "None");
}

TEST_CASE("params are found by name and read by type") {
  const Params p{{"axis", std::int64_t{1}}, {"reverse", false}};
  CHECK(p.get<std::int64_t>("axis") == 1);
  CHECK(p.find("axes") == nullptr);
  CHECK(Params{}.empty());
}

TEST_CASE("reading a param that is missing or of another type is a defect") {
  const Params p{{"axis", std::int64_t{1}}};
  CHECK_THROWS_AS(p.get<bool>("axis"), InternalError);
  CHECK_THROWS_AS(p.get<bool>("reverse"), InternalError);
}

TEST_CASE("with replaces a value or appends one, and leaves the original alone") {
  const Params p{{"a", std::int64_t{1}}, {"b", std::int64_t{2}}};
  const Params q = p.with("a", std::int64_t{5}).with("c", None{});
  CHECK(p.get<std::int64_t>("a") == 1);
  CHECK(q.get<std::int64_t>("a") == 5);
  REQUIRE(q.items().size() == 3);
  CHECK(std::string_view(q.items()[2].key) == "c");
}

TEST_CASE("equal params have equal values and equal hashes") {
  const Params p{{"axes", Ints{0, 1}}, {"dims", DotDims{{1}, {0}, {}, {}}}, {"dtype", float32}};
  const Params q{{"axes", Ints{0, 1}}, {"dims", DotDims{{1}, {0}, {}, {}}}, {"dtype", float32}};
  CHECK(p == q);
  CHECK(hash_of(p) == hash_of(q));
  CHECK_FALSE(p == p.with("axes", Ints{0}));
  CHECK_FALSE(p == p.with("axes", std::int64_t{0}));
  CHECK_FALSE(p == Params{});
}

TEST_CASE("opaque values are equal when type and meaning agree") {
  const Params p{{"jvp", rule<Rule>("f")}};
  CHECK(p == Params{{"jvp", rule<Rule>("f")}});
  CHECK_FALSE(p == Params{{"jvp", rule<Rule>("g")}});
  CHECK_FALSE(p == Params{{"jvp", rule<OtherRule>("f")}});
  CHECK_FALSE(p == Params{{"jvp", OpaquePtr()}});
  CHECK(hash_of(p) == hash_of(Params{{"jvp", rule<Rule>("f")}}));
}

TEST_CASE("opaque values are read by their class") {
  const Params p{{"jvp", rule<OtherRule>("f")}};
  CHECK(p.get_opaque<OtherRule>("jvp")->text() == "f");
  CHECK(p.get_opaque<Rule>("jvp")->text() == "f");
  CHECK_THROWS_AS((Params{{"jvp", rule<Rule>("f")}}.get_opaque<OtherRule>("jvp")), InternalError);
}

TEST_CASE("all programs of an equation are visited in order") {
  const auto a = std::make_shared<const Program>(), b = std::make_shared<const Program>();
  const Params p{{"branches", Programs{a, b}}, {"length", std::int64_t{3}}, {"jaxpr", a}};
  Programs seen;
  for_each_program(p, [&](const ProgramPtr& program) { seen.push_back(program); });
  CHECK(seen == Programs{a, b, a});
}

TEST_CASE("numbers are equal when their bits are") {
  const Params zero{{"fill_value", 0.0}}, minus_zero{{"fill_value", -0.0}},
      again{{"fill_value", 0.0}};
  const Params nan{{"fill_value", std::nan("")}};
  CHECK(zero == again);
  CHECK(hash_of(zero) == hash_of(again));
  CHECK(!(zero == minus_zero));
  CHECK(nan == nan.with("fill_value", std::nan("")));
}
