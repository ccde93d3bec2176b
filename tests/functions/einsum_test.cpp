#include "ops/mapped_axes.h"
#include "ops/window.h"
#include "program/print.h"
#include "reprise/ops_reduce.h"

#include <map>
#include <string>

namespace reprise {
namespace {

// Every combination of indices, straight from the definition; explicit subscripts without "...".
std::vector<double> naive(const std::string& subscripts, const Arrays& x) {
  const std::size_t arrow = subscripts.find("->");
  const std::string out = subscripts.substr(arrow + 2);
  std::vector<std::string> in(1);
  for (char c : subscripts.substr(0, arrow)) {
    if (c == ',')
      in.emplace_back();
    else
      in.back().push_back(c);
  }
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t d = 0; d < in[i].size(); ++d) {
      sizes[in[i][d]] = std::max(sizes[in[i][d]], x[i].shape()[d]);
    }
  }
  std::string order = out, summed;
  for (const auto& [letter, size] : sizes) {
    if (out.find(letter) == std::string::npos) summed.push_back(letter);
  }
  const auto shape_of = [&](const std::string& letters) {
    Shape s;
    for (char c : letters) s.push_back(sizes[c]);
    return s;
  };
  std::vector<double> result;
  for_each_index(shape_of(out), [&](const Shape& o) {
    double total = 0;
    for_each_index(shape_of(summed), [&](const Shape& k) {
      double product = 1;
      for (std::size_t i = 0; i < in.size(); ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < in[i].size(); ++d) {
          const std::size_t there = out.find(in[i][d]);
          const std::int64_t index =
              there != std::string::npos ? o[there] : k[summed.find(in[i][d])];
          at = at * x[i].shape()[d] + (x[i].shape()[d] == 1 ? 0 : index);
        }
        product *= x[i].to_vector<double>()[static_cast<std::size_t>(at)];
      }
      total += product;
    });
    result.push_back(total);
  });
  return result;
}

struct Case {
  const char* subscripts;
  std::vector<Shape> shapes;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,jk->ki", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}},
      {"bhqk,bkhd->bqhd", {{2, 3, 4, 2}, {2, 2, 3, 2}}},
      {"bi,bi->b", {{2, 3}, {2, 3}}},
      {"i,j->ij", {{3}, {4}}},
      {"ij,ij->ji", {{2, 3}, {2, 3}}},
      {"ij,k->ik", {{2, 3}, {4}}},
      {"ij,jk->ik", {{2, 1}, {3, 4}}},
      {"ij->ji", {{2, 3}}},
      {"ij->", {{2, 3}}},
      {"ii->i", {{3, 3}}},
      {"ii->", {{3, 3}}},
      {"iii->i", {{3, 3, 3}}},
      {"ijj,jk->ik", {{2, 3, 3}, {3, 4}}},
      {"iij,jk->k", {{3, 3, 2}, {2, 4}}},
      {",i->i", {{}, {3}}},
      {"->", {{}}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}},
      {"ab,cd,ac,bd->", {{2, 3}, {4, 5}, {2, 4}, {3, 5}}},
      {"a,b,c,d,e,f->acf", {{2}, {3}, {2}, {3}, {2}, {2}}},
      {"ab,bc,cd,de,ef,fa->", {{2, 3}, {3, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 2}}}};
  return all;
}
Arrays operands_of(const Case& c, bool integers) {
  Arrays x;
  for (std::size_t i = 0; i < c.shapes.size(); ++i) {
    x.push_back(integers ? counting(c.shapes[i])
                         : some_direction(Type{float64, c.shapes[i]}, static_cast<unsigned>(i)));
  }
  return x;
}

TEST_CASE("einsum agrees with plain loops") {
  for (const Case& c : cases()) {
    CAPTURE(c.subscripts);
    const Arrays x = operands_of(c, true);
    check_numbers(einsum(c.subscripts, x), naive(c.subscripts, x));
  }
}

TEST_CASE("einsum: derivatives agree with finite differences") {
  for (const Case& c : cases()) {
    CAPTURE(c.subscripts);
    check_derivatives([&](const Arrays& x) -> Arrays { return {einsum(c.subscripts, x)}; },
                      operands_of(c, false));
  }
}

TEST_CASE("einsum fills in the result and further axes") {
  const Array a = counting({2, 3}), b = counting({3, 4}), batch = counting({5, 2, 3});
  check_numbers(einsum("ij,jk", a, b), einsum("ij,jk->ik", a, b).to_vector<double>());
  check_numbers(einsum("ba", a), einsum("ba->ab", a).to_vector<double>());
  check_numbers(einsum("ii", counting({3, 3})), {12});
  check_numbers(einsum(" i j , j k -> i k ", a, b), einsum("ij,jk", a, b).to_vector<double>());
  check_numbers(einsum("...ij,jk", batch, b), einsum("bij,jk->bik", batch, b).to_vector<double>());
  check_numbers(einsum("...ij,...jk->...ik", counting({2, 1, 2, 3}), counting({5, 3, 4})),
                matmul(counting({2, 1, 2, 3}), counting({5, 3, 4})).to_vector<double>());
  CHECK(einsum("i...->...i", counting({2, 3, 4})).shape() == Shape{3, 4, 2});
  CHECK(einsum("a,b,c,d", array({1}), array({2}), array({3}), array({4})).item<int>() == 24);
  CHECK(einsum("ij->i", array({{true, false}})).dtype() == bool_);
}

TEST_CASE("einsum multiplies the cheapest pair first") {
  const auto chain = [](const Arrays& x) -> Arrays { return {einsum("ab,bc,cd->ad", x)}; };
  const Traced t =
      trace(chain, {Type{float32, {100, 2}}, Type{float32, {2, 100}}, Type{float32, {100, 2}}});
  CHECK(t.program->type(t.program->eqns[0].out[0]).size() == 4);
}

TEST_CASE("einsum prints as in JAX: operands in the order that needs no transpose") {
  const auto text = [](const char* subscripts, const Shape& a, const Shape& b) {
    const auto f = [&](const Arrays& x) -> Arrays { return {einsum(subscripts, x[0], x[1])}; };
    return to_text(*trace(f, {Type{float32, a}, Type{float32, b}}).program);
  };
  CHECK(text("ij,kj->ki", {2, 3}, {4, 3}) ==
        "{ lambda ; a:f32[2,3] b:f32[4,3]. let\n"
        "    c:f32[4,2] = dot_general[\n"
        "      dimension_numbers=(([1], [1]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] b a\n"
        "  in (c,) }");
  CHECK(text("bhqk,bkhd->bqhd", {2, 3, 4, 6}, {2, 6, 3, 5}) ==
        "{ lambda ; a:f32[2,3,4,6] b:f32[2,6,3,5]. let\n"
        "    c:f32[2,3,5,4] = dot_general[\n"
        "      dimension_numbers=(([1], [3]), ([0, 2], [0, 1]))\n"
        "      preferred_element_type=float32\n"
        "    ] b a\n"
        "    d:f32[2,4,3,5] = transpose[permutation=(0, 3, 1, 2)] c\n"
        "  in (d,) }");
}

TEST_CASE("einsum explains subscripts that do not fit") {
  const Array a = counting({2, 3}), b = counting({3, 4});
  CHECK_THROWS_WITH_AS(
      einsum("ij", a, b),
      doctest::Contains("einsum: one subscript for each operand is needed, got ij for "
                        "2 operands"),
      TypeError);
  CHECK_THROWS_WITH_AS(
      einsum("ijk,jk", a, b),
      doctest::Contains("einsum: operand 0 needs a letter for each axis, got ijk for "
                        "f64[2,3]"),
      TypeError);
  CHECK_THROWS_WITH_AS(
      einsum("ij,ik", a, b),
      doctest::Contains("einsum: sizes of one letter differ, got 3 (operand 1 axis 0) "
                        "and 2 before"),
      TypeError);
  CHECK_THROWS_WITH_AS(einsum("ij->ii", a), doctest::Contains("einsum: a letter of the result"),
                       TypeError);
  CHECK_THROWS_AS(einsum("ij->k", a), TypeError);
  for (const char* bad : {"i1", "i..", "....", "...i...", "i->j->k", "i>j", "ij->...->", ""}) {
    CHECK_THROWS_AS(einsum(bad, a), TypeError);
  }
  CHECK_THROWS_AS(einsum("", Arrays{}), TypeError);
}

}  // namespace
}  // namespace reprise
