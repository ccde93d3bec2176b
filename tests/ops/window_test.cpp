#include "ops/window.h"

#include "ops/mapped_axes.h"
#include "program/print.h"
#include "reprise/lax.h"

#include <functional>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
Array waves(Shape shape) { return some_direction(Type{float64, std::move(shape)}, 11); }

using Window = lax::WindowDimensions;
using Reduction = Array (*)(Operand, const Window&);
FlatFunction windowed(Reduction r, const Window& w) {
  return [=](const Arrays& x) -> Arrays { return {r(x[0], w)}; };
}

struct Case {
  Shape shape;
  Window window;
};
const std::vector<Case>& plain_cases() {
  static const std::vector<Case> all{
      {{6}, {{2}, {2}, {{0, 0}}}},
      {{7}, {{3}, {2}, {{1, 1}}}},
      {{7}, {{3}, {1}, {{-1, -2}}}},
      {{5, 6}, {{2, 3}, {1, 2}, {{1, 1}, {0, 2}}}},
      {{2, 5, 4, 3}, {{1, 2, 2, 1}, {1, 2, 2, 1}, {{0, 0}, {0, 1}, {0, 0}, {0, 0}}}},
      {{5, 6}, {{2, 3}, {1, 2}, {{1, 1}, {0, 2}}, {2, 1}}}};
  return all;
}
const Case dilated_window{{5, 6}, {{2, 3}, {1, 2}, {{1, 1}, {0, 2}}, {2, 1}, {1, 2}}};

// A window element at a time, on the input written out with its holes and padding.
std::vector<double> naive(const Array& x, const Window& w, double neutral,
                          const std::function<double(double, double)>& combine) {
  WindowAxes axes(x.shape().size());
  Shape out;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    axes[d] = {.in = x.shape()[d],
               .window = w.window_dimensions[d],
               .stride = w.window_strides[d],
               .low = w.padding[d].first,
               .high = w.padding[d].second,
               .base_dilation = w.base_dilation.empty() ? 1 : w.base_dilation[d],
               .window_dilation = w.window_dilation.empty() ? 1 : w.window_dilation[d]};
    out.push_back(axes[d].out());
  }
  const std::vector<double> v = x.to_vector<double>();
  const Shape strides = row_major_strides(x.shape());
  std::vector<double> result;
  for_each_index(out, [&](const Shape& o) {
    double total = neutral;
    for_each_index(w.window_dimensions, [&](const Shape& k) {
      std::int64_t at = 0;
      bool inside = true;
      for (std::size_t d = 0; d < axes.size(); ++d) {
        const std::int64_t p = o[d] * axes[d].stride + k[d] * axes[d].window_dilation - axes[d].low;
        inside = inside && p >= 0 && p % axes[d].base_dilation == 0 &&
                 p / axes[d].base_dilation < axes[d].in;
        at += p / axes[d].base_dilation * strides[d];
      }
      if (inside) total = combine(total, v[static_cast<std::size_t>(at)]);
    });
    result.push_back(total);
  });
  return result;
}

TEST_CASE("window reductions agree with plain loops") {
  std::vector<Case> all = plain_cases();
  all.push_back(dilated_window);
  for (const Case& c : all) {
    const Array x = counting(c.shape);
    check_numbers(lax::reduce_window_sum(x, c.window),
                  naive(x, c.window, 0, [](double a, double b) { return a + b; }));
    check_numbers(lax::reduce_window_max(x, c.window),
                  naive(x, c.window, -inf, [](double a, double b) { return std::max(a, b); }));
    check_numbers(lax::reduce_window_min(x, c.window),
                  naive(x, c.window, inf, [](double a, double b) { return std::min(a, b); }));
  }
}

TEST_CASE("window reductions: derivatives agree with finite differences") {
  for (const Case& c : plain_cases()) {
    check_derivatives(windowed(lax::reduce_window_sum, c.window), {waves(c.shape)});
    check_derivatives(windowed(lax::reduce_window_max, c.window), {waves(c.shape)});
    check_derivatives(windowed(lax::reduce_window_min, c.window), {waves(c.shape)});
  }
  check_derivatives(windowed(lax::reduce_window_sum, dilated_window.window),
                    {waves(dilated_window.shape)});
}

// The gradient of the sum of squared window maxima: its own derivative uses both selections.
Arrays gradient(const Window& w, const Array& x, const Array& ct) {
  const Traced t = trace(windowed(lax::reduce_window_max, w), {x.type()});
  const Linearized l = linearize(*t.program, {x}, {true});
  Primals args(l.residuals.begin(), l.residuals.end());
  args.push_back(std::nullopt);
  return {*backward(*l.linear, args, {ct})[0]};
}
TEST_CASE("the gradient of a window maximum is linear in its cotangent") {
  const Window w{{3}, {2}, {{1, 1}}};
  const Array x = waves({7});
  check_derivatives([&](const Arrays& a) { return gradient(w, a[1].astype(float64), a[0]); },
                    {waves({4}), x.astype(float32)});
}

TEST_CASE("a maximum inside the padding gets no gradient, the first of equal ones gets all") {
  const Array x = array({-inf, 1.0, 1.0, 0.0});
  const Window w{{2}, {2}, {{0, 0}}};
  check_numbers(gradient(w, x, array({3.0, 5.0}))[0], {0, 3, 5, 0});
  const Window padded{{2}, {5}, {{1, 0}}};
  check_numbers(gradient(padded, array({-inf, 1.0, 1.0, 0.0}), array({3.0}))[0], {0, 0, 0, 0});
}

TEST_CASE("window reductions and selections map over every axis") {
  for (const Case& c : plain_cases()) {
    Shape shape = c.shape;
    shape.insert(shape.begin(), 3);
    const auto rank = static_cast<std::int64_t>(c.shape.size());
    for (std::int64_t at = 0; at <= rank; ++at) {
      for (Reduction r : {lax::reduce_window_sum, lax::reduce_window_max, lax::reduce_window_min}) {
        check_mapped(windowed(r, c.window), {counting(shape)}, {at});
      }
    }
  }
  const Window w{{3}, {2}, {{1, 1}}};
  const auto pull = [&](const Arrays& a) { return gradient(w, a[0], a[1]); };
  const Array x = waves({3, 7}), ct = waves({3, 4}), one = waves({4});
  for (std::int64_t at : {0, 1}) {
    check_mapped(pull, {x, ct}, {at, 1 - at});
    check_mapped(pull, {x, one}, {at, std::nullopt});
  }
}

TEST_CASE("window reductions take integers, half precision, empty and rank-0 arrays") {
  const Window pairs{{2}, {1}, {{0, 0}}};
  CHECK(lax::reduce_window_sum(array({1, 2, 3}), pairs).to_vector<int>() == std::vector<int>{3, 5});
  CHECK(lax::reduce_window_max(array({1.0, 2.0}).astype(float16), pairs).item<float>() == 2);
  CHECK(lax::reduce_window_max(waves({0}), {{2}, {1}, {{3, 3}}}).shape() == Shape{5});
  CHECK(lax::reduce_window_sum(waves({2}), {{3}, {1}, {{0, 0}}}).shape() == Shape{0});
  CHECK(lax::reduce_window_sum(array(2.0), {{}, {}, {}}).item<float>() == 2);
}

TEST_CASE("window reductions print as in JAX") {
  const auto f = windowed(lax::reduce_window_max, {{2}, {2}, {{0, 0}}});
  CHECK(to_text(*trace(f, {Type{float32, {6}}}).program) ==
        "{ lambda ; a:f32[6]. let\n"
        "    b:f32[3] = reduce_window_max[\n"
        "      base_dilation=(1,)\n"
        "      padding=((0, 0),)\n"
        "      window_dilation=(1,)\n"
        "      window_dimensions=(2,)\n"
        "      window_strides=(2,)\n"
        "    ] a\n"
        "  in (b,) }");
}

TEST_CASE("window reductions reject geometry that does not fit") {
  const auto message = [](const Window& w) {
    return error_of<TypeError>([&] { lax::reduce_window_sum(waves({4, 4}), w); });
  };
  const Pads none{{0, 0}, {0, 0}};
  CHECK(message({{2}, {1, 1}, none})
            .find("reduce_window_sum: window_dimensions must have one value for each of 2 axes") ==
        0);
  CHECK(message({{2, 0}, {1, 1}, none})
            .find("reduce_window_sum: window_dimensions must be at least 1") == 0);
  CHECK(message({{2, 2}, {1, 0}, none})
            .find("reduce_window_sum: window_strides must be at least 1") == 0);
  CHECK(message({{2, 2}, {1, 1}, {{0, 0}}}).find("reduce_window_sum: padding must have") == 0);
  CHECK(message({{2, 2}, {1, 1}, none, {0, 1}})
            .find("reduce_window_sum: base_dilation must be at least 1") == 0);
  CHECK(message({{2, 2}, {std::int64_t{1} << 40, 1}, none})
            .find("reduce_window_sum: window_strides must be at least 1 and less than 2^31") == 0);
  const Window holes{{2}, {1}, {{0, 0}}, {}, {2}};
  CHECK_THROWS_WITH_AS(gradient(holes, waves({5}), waves({3})),
                       doctest::Contains("no transpose rule for dilated windows"), RuleError);
}

}  // namespace
}  // namespace reprise
