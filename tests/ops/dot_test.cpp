#include "ops/dot.h"

#include "ops/mapped_axes.h"
#include "ops/window.h"
#include "program/print.h"
#include "reprise/lax.h"

#include <limits>

namespace reprise {
namespace {

using Dims = lax::DotDimensionNumbers;

Array waves(Shape shape, unsigned seed = 1) {
  return some_direction(Type{float64, std::move(shape)}, seed);
}
FlatFunction dot_of(const Dims& dims) {
  return [dims](const Arrays& x) -> Arrays { return {lax::dot_general(x[0], x[1], dims)}; };
}

// One output element at a time, straight from the definition.
std::vector<double> naive_dot(const Array& a, const Array& b, const Dims& d) {
  const auto others = [](const Array& x, const lax::Ints& c, const lax::Ints& batch) {
    lax::Ints out;
    for (std::int64_t i = 0; i < x.ndim(); ++i) {
      const bool used =
          std::count(c.begin(), c.end(), i) + std::count(batch.begin(), batch.end(), i);
      if (!used) out.push_back(i);
    }
    return out;
  };
  const auto sizes = [](const Array& x, const lax::Ints& axes) {
    Shape out;
    for (std::int64_t i : axes) out.push_back(x.shape(i));
    return out;
  };
  const auto add_offset = [](const Array& x, const lax::Ints& axes, const Shape& index) {
    const Shape strides = row_major_strides(x.shape());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      at += strides[static_cast<std::size_t>(axes[i])] * index[i];
    }
    return at;
  };
  const lax::Ints a_free = others(a, d.lhs_contracting, d.lhs_batch);
  const lax::Ints b_free = others(b, d.rhs_contracting, d.rhs_batch);
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  std::vector<double> out;
  for_each_index(sizes(a, d.lhs_batch), [&](const Shape& batch) {
    for_each_index(sizes(a, a_free), [&](const Shape& i) {
      for_each_index(sizes(b, b_free), [&](const Shape& j) {
        double sum = 0;
        for_each_index(sizes(a, d.lhs_contracting), [&](const Shape& k) {
          const std::int64_t in_a = add_offset(a, d.lhs_batch, batch) + add_offset(a, a_free, i) +
                                    add_offset(a, d.lhs_contracting, k);
          const std::int64_t in_b = add_offset(b, d.rhs_batch, batch) + add_offset(b, b_free, j) +
                                    add_offset(b, d.rhs_contracting, k);
          sum += x[static_cast<std::size_t>(in_a)] * y[static_cast<std::size_t>(in_b)];
        });
        out.push_back(sum);
      });
    });
  });
  return out;
}

struct Case {
  Shape a, b;
  Dims dims;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{2, 3}, {3, 4}, {{1}, {0}, {}, {}}},
      {{3}, {3}, {{0}, {0}, {}, {}}},
      {{2}, {3}, {{}, {}, {}, {}}},
      {{}, {3}, {{}, {}, {}, {}}},
      {{5, 2, 3}, {5, 3, 4}, {{2}, {1}, {0}, {0}}},
      {{2, 5, 3}, {3, 5, 4, 2}, {{2, 0}, {0, 3}, {1}, {1}}},
      {{3, 2}, {4, 2, 3}, {{1, 0}, {1, 2}, {}, {}}},
      {{2, 3}, {2, 3}, {{}, {}, {1, 0}, {1, 0}}},
      {{7, 300}, {300}, {{1}, {0}, {}, {}}},
  };
  return all;
}

TEST_CASE("dot_general sums products over contracting axes for each batch index") {
  for (const Case& c : cases()) {
    const Array a = waves(c.a), b = waves(c.b, 2);
    const Array y = lax::dot_general(a, b, c.dims);
    const std::vector<double> expected = naive_dot(a, b, c.dims), got = y.to_vector<double>();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("dot_general: derivatives agree with finite differences") {
  for (const Case& c : cases()) check_derivatives(dot_of(c.dims), {waves(c.a), waves(c.b, 2)});
}

TEST_CASE("dot_general maps over every axis of either operand or of both") {
  for (const Case& c : cases()) {
    const auto rank = [](const Shape& s) { return static_cast<std::int64_t>(s.size()); };
    const auto mapped = [](Shape s) {
      s.insert(s.begin(), 3);
      return counting(std::move(s));
    };
    for (std::int64_t i = -1; i <= rank(c.a); ++i) {
      for (std::int64_t j = -1; j <= rank(c.b); ++j) {
        if (i < 0 && j < 0) continue;
        check_mapped(dot_of(c.dims),
                     {i < 0 ? counting(c.a) : mapped(c.a), j < 0 ? counting(c.b) : mapped(c.b)},
                     {i < 0 ? Axis() : Axis(i), j < 0 ? Axis() : Axis(j)});
      }
    }
  }
}

TEST_CASE("a mapped axis of one operand only is no batch axis") {
  const auto program_of = [](const Axes& axes, const Types& in) {
    const Traced t = trace(dot_of({{1}, {0}, {}, {}}), {Type{float32, {5, 4}}, Type{float32, {4}}});
    const auto mapped = [&](const Arrays& x) { return vmap(*t.program, x, axes, 3).out; };
    return to_text(*trace(mapped, in).program);
  };
  CHECK(program_of({std::nullopt, 0}, {Type{float32, {5, 4}}, Type{float32, {3, 4}}}) ==
        "{ lambda ; a:f32[5,4] b:f32[3,4]. let\n"
        "    c:f32[5,3] = dot_general[dimension_numbers=(([1], [1]), ([], []))] a b\n"
        "  in (c,) }");
  CHECK(program_of({0, 0}, {Type{float32, {3, 5, 4}}, Type{float32, {3, 4}}}) ==
        "{ lambda ; a:f32[3,5,4] b:f32[3,4]. let\n"
        "    c:f32[3,5] = dot_general[dimension_numbers=(([2], [1]), ([0], [0]))] a b\n"
        "  in (c,) }");
}

TEST_CASE("operands of different dtypes meet in the wider one or the preferred one") {
  const Array h = array({1.0, 2.0, 3.0}).astype(bfloat16), f = array({1.0, 2.0, 3.0});
  const Array i = array({1, 2, 3}), b = array({true, false, true});
  const Dims dims{{0}, {0}, {}, {}};
  CHECK(lax::dot_general(h, f, dims).dtype() == float32);
  CHECK(lax::dot_general(i, f, dims).item<float>() == 14);
  CHECK(lax::dot_general(h, h, dims).dtype() == bfloat16);
  CHECK(lax::dot_general(h, h, dims, float32).dtype() == float32);
  CHECK(lax::dot_general(b, b, dims).dtype() == bool_);
  CHECK(lax::dot_general(b, b, dims).item<bool>());
  CHECK(lax::dot_general(f.astype(float16), h, dims).dtype() == bfloat16);
  CHECK_THROWS_AS(lax::dot_general(i, i, dims, int8), TypeError);
}

TEST_CASE("half precision is summed in f32, integers wrap around") {
  const std::vector<float> ones(4000, 1.0f);
  const Array h = array(ones).astype(float16);
  CHECK(lax::dot_general(h, h, {{0}, {0}, {}, {}}).item<float>() == 4000);
  const Array big = array(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(), 1});
  const Array two = array(std::vector<std::int32_t>{2, 0});
  CHECK(lax::dot_general(big, two, {{0}, {0}, {}, {}}).item<int>() == -2);
}

TEST_CASE("an empty contraction is zero, an empty result is empty") {
  const Array y = lax::dot_general(waves({2, 0}), waves({0, 3}), {{1}, {0}, {}, {}});
  check_numbers(y, {0, 0, 0, 0, 0, 0});
  CHECK(lax::dot_general(waves({0, 2}), waves({2, 3}), {{1}, {0}, {}, {}}).shape() == Shape{0, 3});
}

TEST_CASE("dot_general names the axes that do not fit") {
  const auto message = [](const Dims& d) {
    return error_of<TypeError>([&] { lax::dot_general(waves({2, 3}), waves({4, 5}), d); });
  };
  CHECK(message({{1}, {0}, {}, {}})
            .find("dot_general: contracting sizes differ, got 3 (lhs axis 1) "
                  "and 4 (rhs axis 0)\n  lhs f64[2,3], rhs f64[4,5]") == 0);
  CHECK(message({{}, {}, {0}, {0}}).find("dot_general: batch sizes differ") == 0);
  CHECK(message({{2}, {0}, {}, {}}).find("dot_general: lhs axis is out of range, got axis 2") == 0);
  CHECK(message({{-1}, {0}, {}, {}}).find("dot_general: lhs axis is out of range") == 0);
  CHECK(message({{1, 1}, {0, 0}, {}, {}}).find("dot_general: lhs axes repeat") == 0);
  CHECK(message({{1}, {0}, {1}, {0}}).find("dot_general: lhs axes repeat") == 0);
  CHECK(message({{0, 1}, {0}, {}, {}}).find("dot_general: numbers of contracting axes differ") ==
        0);
}

TEST_CASE("the matrix product adds blocks of any length") {
  for (std::int64_t k : {0, 1, 3, 4, 127, 128, 129, 260}) {
    std::vector<double> a(static_cast<std::size_t>(k), 1), b(static_cast<std::size_t>(2 * k), 2);
    double out[2] = {-1, -1};
    multiply_matrices(a.data(), b.data(), out, MatrixSizes{1, k, 2});
    CHECK(out[0] == 2.0 * static_cast<double>(k));
    CHECK(out[1] == 2.0 * static_cast<double>(k));
  }
}

}  // namespace
}  // namespace reprise
