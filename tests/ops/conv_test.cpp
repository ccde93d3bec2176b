#include "ops/conv.h"

#include "ops/mapped_axes.h"
#include "ops/reduce.h"
#include "program/print.h"
#include "reprise/lax.h"
#include "reprise/program.h"

namespace reprise {
namespace {

Array waves(Shape shape, unsigned seed = 3) {
  return some_direction(Type{float64, std::move(shape)}, seed);
}
using Options = lax::ConvOptions;
FlatFunction conv(const Options& o) {
  return [o](const Arrays& x) -> Arrays { return {lax::conv_general_dilated(x[0], x[1], o)}; };
}

struct Case {
  Shape lhs, rhs;
  Options options;
};
const std::vector<Case>& cases() {
  const auto nhwc = lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const auto mixed = lax::conv_dimension_numbers("NHWC", "WHIO", "CNWH");
  static const std::vector<Case> all{
      {{2, 4, 9}, {6, 4, 3}, {{1}, {{1, 1}}}},
      {{2, 5, 6, 3}, {3, 3, 3, 4}, {{1, 2}, {{1, 1}, {0, 1}}, {}, {}, nhwc}},
      {{2, 5, 6, 3}, {2, 3, 3, 4}, {{2, 1}, {{-1, 0}, {2, -2}}, {}, {}, mixed}},
      {{2, 4, 9}, {6, 2, 3}, {{2}, {{1, -1}}, {}, {2}, {}, 2}},
      {{4, 4, 9}, {6, 4, 3}, {{2}, {{1, 1}}, {}, {}, {}, 1, 2}},
      {{2, 6, 4, 4}, {6, 1, 3, 3}, {{1, 1}, {{1, 1}, {1, 1}}, {}, {}, {}, 6}},
      {{2, 3, 3, 4, 3},
       {2, 3, 2, 2, 3},
       {{1, 2, 1}, {{1, 0}, {0, 1}, {1, 1}}, {1, 2, 1}, {1, 1, 2}}},
      {{2, 4, 9}, {6, 4, 3}, {{3}, {{4, 5}}, {3}, {2}}},
      {{2, 3}, {4, 3}, {}}};
  return all;
}

// One output element at a time, straight from the definition.
std::vector<double> naive(const Array& lhs, const Array& rhs, const Options& options,
                          const Shape& out_shape) {
  const std::size_t n = lhs.shape().size() - 2;
  const Ints order = lax::iota_ints(lhs.ndim());
  const auto layout =
      options.dimension_numbers.value_or(lax::ConvDimensionNumbers{order, order, order});
  const auto at = [](const Ints& v, std::size_t i, std::int64_t absent) {
    return v.empty() ? absent : v[i];
  };
  const auto read = [](const Array& x, const Ints& spec, const Ints& canonical) {
    const Shape strides = row_major_strides(x.shape());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < spec.size(); ++i) {
      offset += strides[static_cast<std::size_t>(spec[i])] * canonical[i];
    }
    return x.to_vector<double>()[static_cast<std::size_t>(offset)];
  };
  const Shape in = sizes_at(lhs.shape(), layout.lhs_spec),
              kernel = sizes_at(rhs.shape(), layout.rhs_spec);
  const std::int64_t per_group =
      kernel[0] / (options.feature_group_count * options.batch_group_count);
  std::vector<double> out;
  for_each_index(out_shape, [&](const Shape& index) {
    const Ints o = sizes_at(index, layout.out_spec);  // batch, feature, spatial
    const std::int64_t group = o[1] / per_group;
    const std::int64_t batch =
        options.batch_group_count > 1 ? group * (in[0] / options.batch_group_count) + o[0] : o[0];
    const std::int64_t first = options.feature_group_count > 1 ? group * kernel[1] : 0;
    double sum = 0;
    for_each_index(Shape(kernel.begin() + 1, kernel.end()), [&](const Shape& k) {
      Ints from{batch, first + k[0]}, weight{o[1]};
      weight.insert(weight.end(), k.begin(), k.end());
      for (std::size_t d = 0; d < n; ++d) {
        const std::int64_t low = options.padding.empty() ? 0 : options.padding[d].first;
        const std::int64_t p = o[d + 2] * at(options.window_strides, d, 1) +
                               k[d + 1] * at(options.rhs_dilation, d, 1) - low;
        const std::int64_t holes = at(options.lhs_dilation, d, 1);
        if (p < 0 || p % holes != 0 || p / holes >= in[d + 2]) return;
        from.push_back(p / holes);
      }
      sum += read(lhs, layout.lhs_spec, from) * read(rhs, layout.rhs_spec, weight);
    });
    out.push_back(sum);
  });
  return out;
}

TEST_CASE("convolutions agree with plain loops") {
  for (const Case& c : cases()) {
    const Array x = waves(c.lhs), w = waves(c.rhs, 4);
    const Array y = lax::conv_general_dilated(x, w, c.options);
    const std::vector<double> got = y.to_vector<double>();
    const std::vector<double> expected = naive(x, w, c.options, y.shape());
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-10));
    }
  }
}

TEST_CASE("convolutions: derivatives agree with finite differences") {
  for (const Case& c : cases()) {
    check_derivatives(conv(c.options), {waves(c.lhs), waves(c.rhs, 4)});
  }
}

TEST_CASE("convolutions map over every axis of either operand or of both") {
  for (const Case& c : cases()) {
    const auto mapped = [](Shape s, bool is_mapped) {
      if (is_mapped) s.insert(s.begin(), 2);
      return counting(std::move(s));
    };
    const auto rank = static_cast<std::int64_t>(c.lhs.size());
    for (std::int64_t i = -1; i <= rank; ++i) {
      const std::int64_t j = rank - 1 - i;  // every position of both, in opposite order
      const Axis both = j < 0 ? Axis() : Axis(j);
      check_mapped(conv(c.options), {mapped(c.lhs, i >= 0), mapped(c.rhs, both.has_value())},
                   {i < 0 ? Axis() : Axis(i), both});
      if (i < 0) continue;
      check_mapped(conv(c.options), {mapped(c.lhs, true), counting(c.rhs)}, {i, std::nullopt});
      check_mapped(conv(c.options), {counting(c.lhs), mapped(c.rhs, true)}, {std::nullopt, i});
    }
  }
}

TEST_CASE("convolutions take integers, half precision and empty operands") {
  const Array i = lax::reshape(array({1, 2, 3}), {1, 1, 3}),
              k = lax::reshape(array({1, 1}), {1, 1, 2});
  CHECK(lax::conv_general_dilated(i, k, {}).to_vector<int>() == std::vector<int>{3, 5});
  const Array h = array(std::vector<float>(4000, 1.0f), Shape{1, 1, 4000}).astype(float16);
  CHECK(lax::conv_general_dilated(h, h, {}).item<float>() == 4000);
  Options wide;
  wide.preferred_element_type = float32;
  CHECK(lax::conv_general_dilated(h, h, wide).dtype() == float32);
  CHECK(lax::conv_general_dilated(waves({0, 4, 9}), waves({6, 4, 3}), {}).shape() ==
        Shape{0, 6, 7});
  CHECK(lax::conv_general_dilated(waves({2, 4, 2}), waves({6, 4, 3}), {}).shape() ==
        Shape{2, 6, 0});
  check_numbers(lax::conv_general_dilated(waves({1, 0, 2}), waves({1, 0, 1}), {}), {0, 0});
}

TEST_CASE("layouts by letters and padding by name") {
  const auto n = lax::conv_dimension_numbers("NHWC", "HWIO", "NCHW");
  CHECK(n.lhs_spec == Ints{0, 3, 1, 2});
  CHECK(n.rhs_spec == Ints{3, 2, 0, 1});
  CHECK(n.out_spec == Ints{0, 1, 2, 3});
  CHECK_THROWS_AS(lax::conv_dimension_numbers("NHWC", "HWIO", "NHW"), TypeError);
  CHECK_THROWS_AS(lax::conv_dimension_numbers("NHHC", "HWIO", "NHWC"), TypeError);
  CHECK_THROWS_AS(lax::conv_dimension_numbers("NHWC", "HXIO", "NHWC"), TypeError);
  CHECK(lax::padtype_to_pads({5, 6}, {3, 3}, {2, 2}, "SAME") == Pads{{1, 1}, {0, 1}});
  CHECK(lax::padtype_to_pads({5, 6}, {3, 3}, {2, 2}, "SAME_LOWER") == Pads{{1, 1}, {1, 0}});
  CHECK(lax::padtype_to_pads({5}, {3}, {2}, "VALID") == Pads{{0, 0}});
  CHECK_THROWS_AS(lax::padtype_to_pads({5}, {3}, {2}, "ALMOST"), TypeError);
  CHECK_THROWS_AS(lax::padtype_to_pads({5}, {3}, {2, 2}, "SAME"), TypeError);
}

TEST_CASE("convolutions print as in JAX and are read back") {
  const std::string text =
      "{ lambda ; a:f32[2,5,6,3] b:f32[3,3,3,4]. let\n"
      "    c:f32[2,5,3,4] = conv_general_dilated[\n"
      "      batch_group_count=1\n"
      "      dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), "
      "out_spec=(0, 3, 1, 2))\n"
      "      feature_group_count=1\n"
      "      lhs_dilation=(1, 1)\n"
      "      out_sharding=None\n"
      "      padding=((1, 1), (0, 1))\n"
      "      precision=None\n"
      "      preferred_element_type=None\n"
      "      rhs_dilation=(1, 1)\n"
      "      window_strides=(1, 2)\n"
      "    ] a b\n"
      "  in (c,) }";
  const Case& c = cases()[1];
  const Traced t = trace(conv(c.options), {Type{float32, c.lhs}, Type{float32, c.rhs}});
  CHECK(to_text(*t.program) == text);
  const Jaxpr parsed = parse_jaxpr(text);
  CHECK(parsed.str() == text);
  const Array x = waves(c.lhs).astype(float32), w = waves(c.rhs, 4).astype(float32);
  check_numbers(parsed.eval({x, w})[0],
                lax::conv_general_dilated(x, w, c.options).to_vector<double>());
}

TEST_CASE("convolutions name what does not fit") {
  const auto message = [](const Shape& lhs, const Shape& rhs, const Options& o) {
    return error_of<TypeError>([&] { lax::conv_general_dilated(waves(lhs), waves(rhs), o); });
  };
  const std::string op = "conv_general_dilated: ";
  CHECK(message({2, 4, 9}, {6, 4}, {}).find(op + "operands need equal ranks") == 0);
  CHECK(message({2, 4, 9}, {6, 3, 3}, {})
            .find(op +
                  "lhs features must be rhs input features times feature_group_count, got 4 and "
                  "3 times 1") == 0);
  CHECK(message({2, 4, 9}, {6, 4, 3}, {{1, 1}}).find(op + "window_strides must have one value") ==
        0);
  CHECK(message({2, 4, 9}, {6, 4, 3}, {{0}}).find(op + "window_strides must be at least 1") == 0);
  CHECK(message({2, 4, 9}, {6, 4, 3}, {{1}, {{-9, -1}}}).find(op + "negative padding must leave") ==
        0);
  CHECK(message({2, 4, 9}, {5, 2, 3}, {{}, {}, {}, {}, {}, 2}).find(op + "groups must divide") ==
        0);
  CHECK(message({2, 4, 9}, {6, 4, 3}, {{}, {}, {}, {}, {}, 0}).find(op + "group counts must be") ==
        0);
  CHECK_THROWS_WITH_AS(lax::conv_general_dilated(waves({2, 4, 9}), array({{{1}}}), {}),
                       doctest::Contains("conv_general_dilated: dtypes differ"), TypeError);
  Options narrow;
  narrow.preferred_element_type = float32;
  CHECK_THROWS_AS(lax::conv_general_dilated(waves({2, 4, 9}), waves({6, 4, 3}), narrow), TypeError);
}

}  // namespace
}  // namespace reprise
