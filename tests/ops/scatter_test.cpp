#include "ops/scatter.h"

#include "ops/index_reference.h"
#include "ops/mapped_axes.h"
#include "ops/records.h"

namespace reprise {
namespace {

using lax::ScatterDimensionNumbers;
using lax::ScatterOptions;
using Scatter = Array (*)(Operand, Operand, Operand, const ScatterDimensionNumbers&,
                          const ScatterOptions&);
struct Kind {
  Scatter scatter;
  std::function<double(double, double)> combine;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {lax::scatter, [](double, double b) { return b; }},
      {lax::scatter_add, [](double a, double b) { return a + b; }},
      {lax::scatter_mul, [](double a, double b) { return a * b; }},
      {lax::scatter_min, [](double a, double b) { return std::min(a, b); }},
      {lax::scatter_max, [](double a, double b) { return std::max(a, b); }}};
  return all;
}
ScatterDimensionNumbers scatter_numbers(const GatherDimensionNumbers& n) {
  return {n.offset_dims, n.collapsed_slice_dims, n.start_index_map, n.operand_batching_dims,
          n.start_indices_batching_dims};
}
// Different everywhere, some above and some below counting().
Array some_updates(const Shape& shape) {
  const Array up = counting(shape);
  return lax::sub(lax::mul(up, 1.7), 3.3);
}

TEST_CASE("scatter follows its definition in every mode") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    const Array x = counting(c.operand), updates = some_updates(c.windows);
    for (const Kind& kind : kinds()) {
      for (GatherScatterMode mode : {GatherScatterMode::clip, GatherScatterMode::fill_or_drop,
                                     GatherScatterMode::promise_in_bounds}) {
        const Array y = kind.scatter(x, c.indices, updates, scatter_numbers(c.numbers), {mode});
        const bool clamp = mode == GatherScatterMode::clip;
        check_numbers(
            y, scatter_reference(x, c.indices, updates, c.numbers, c.sizes, clamp, kind.combine));
      }
    }
  }
}

TEST_CASE("scatter combines elements of every dtype") {
  const Array i = array({{1}, {1}});
  const ScatterDimensionNumbers n{{}, {0}, {0}};
  for (Dtype d : {int8, uint8, int16, int32, uint32, int64, float16, bfloat16, float32, float64}) {
    CAPTURE(d);
    const Array x = array({1, 2, 3}, d), u = array({3, 4}, d);
    CHECK(lax::scatter_add(x, i, u, n).dtype() == d);
    check_numbers(lax::scatter_add(x, i, u, n), {1, 9, 3});
    check_numbers(lax::scatter_mul(x, i, u, n), {1, 24, 3});
    check_numbers(lax::scatter_max(x, i, u, n), {1, 4, 3});
    check_numbers(lax::scatter(x, i, u, n), {1, 4, 3});
  }
  const Array flags = array({false, true}), one = array({{0}}), yes = array({true});
  check_numbers(lax::scatter_max(flags, one, yes, n), {1, 1});
  CHECK_THROWS_AS(lax::scatter_add(flags, one, yes, n), TypeError);
  check_numbers(lax::scatter_add(array({120}, int8), one, array({10}, int8), n), {-126});
  const double nan = std::nan("");
  check_numbers(lax::scatter_min(array({1.0, nan}), array({{0}, {1}}), array({nan, 2.0}), n),
                {nan, nan});
  check_numbers(
      lax::scatter(array({1, 2}), lax::full({0, 1}, 0, int32), lax::full({0}, 0, int32), n),
      {1, 2});
}

TEST_CASE("scatter differentiates by operand and updates") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    const ScatterDimensionNumbers n = scatter_numbers(c.numbers);
    const Array x = lax::add(counting(c.operand), 0.25), u = some_updates(c.windows);
    for (const Kind& kind : kinds()) {
      for (bool unique : {false, true}) {
        if (unique && c.overlaps) continue;  // the promise would be broken
        if (!unique && kind.scatter == lax::scatter_mul) continue;
        check_derivatives(
            [&](const Arrays& a) {
              return Arrays{kind.scatter(a[0], a[1], a[2], n, {.unique_indices = unique})};
            },
            {x, c.indices, u}, 1e-5);
      }
    }
  }
}

TEST_CASE("ties of scatter-max share the derivative") {
  const Traced t = trace(
      [](const Arrays& a) {
        return Arrays{lax::scatter_max(a[0], a[1], a[2], {{}, {0}, {0}})};
      },
      {Type{float64, {2}}, Type{int32, {2, 1}}, Type{float64, {2}}});
  const Array x = array({5.0, 1.0}, float64), i = array({{0}, {0}}), u = array({5.0, 5.0}, float64);
  const Tangents dx{array({3.0, 0.0}, float64), std::nullopt, array({6.0, 12.0}, float64)};
  check_numbers(*jvp(*t.program, {x, i, u}, dx).tangents[0], {7, 0});
}

TEST_CASE("scatter maps over operand, indices and updates") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    const ScatterDimensionNumbers n = scatter_numbers(c.numbers);
    Shape operands = c.operand, windows = c.windows;
    operands.insert(operands.begin(), 2);
    windows.insert(windows.begin(), 2);
    const Array xs = counting(operands), us = some_updates(windows);
    const Array x = counting(c.operand), u = some_updates(c.windows), i = c.indices;
    const Array is =
        lax::concatenate({lax::expand_dims(i, {0}), lax::expand_dims(lax::sub(i, 1), {0})}, 0);
    const auto no = std::nullopt;
    for (const Kind& kind : kinds()) {
      const FlatFunction f = [&](const Arrays& a) {
        return Arrays{kind.scatter(a[0], a[1], a[2], n, {})};
      };
      check_mapped(f, {xs, i, us}, {xs.ndim() - 1, no, us.ndim() - 1});
      check_mapped(f, {xs, i, u}, {0, no, no});
      check_mapped(f, {x, i, us}, {no, no, 0});
      check_mapped(f, {x, is, u}, {no, is.ndim() - 1, no});
      check_mapped(f, {xs, is, us}, {0, 0, us.ndim() - 1});
    }
  }
}

TEST_CASE("scatter without unique indices keeps one of several updates in value and tangent") {
  const Traced t = trace(
      [](const Arrays& a) {
        return Arrays{lax::scatter(a[0], a[1], a[2], {{}, {0}, {0}})};
      },
      {Type{float64, {3}}, Type{int32, {2, 1}}, Type{float64, {2}}});
  const Array x = counting({3}), i = array({{1}, {1}}), u = array({10.0, 20.0}, float64);
  const Duals y = jvp(*t.program, {x, i, u},
                      {array({1.0, 2.0, 3.0}, float64), std::nullopt, array({5.0, 7.0}, float64)});
  check_numbers(y.out[0], {0, 20, 2});
  check_numbers(*y.tangents[0], {1, 7, 3});
}

TEST_CASE("rules that need unique indices say so") {
  const Type x{float64, {3}}, i{int32, {2, 1}}, u{float64, {2}};
  const Traced t = trace(
      [](const Arrays& a) {
        return Arrays{lax::scatter_mul(a[0], a[1], a[2], {{}, {0}, {0}})};
      },
      {x, i, u});
  const Array values = counting({3}), indices = array({{1}, {1}}), updates = counting({2});
  const auto differentiate = [&] {
    jvp(*t.program, {values, indices, updates}, {std::nullopt, std::nullopt, updates});
  };
  CHECK(error_of<RuleError>(differentiate).find("hint: set unique_indices") != std::string::npos);
}

TEST_CASE("update programs are one object per use, and transposition has its own") {
  CHECK(update_program(add_p, float32, UpdateUse::forward) ==
        update_program(add_p, float32, UpdateUse::forward));
  CHECK(update_program(add_p, float32, UpdateUse::forward) !=
        update_program(add_p, float32, UpdateUse::transposed));
  CHECK(update_program(add_p, float32, UpdateUse::forward) !=
        update_program(add_p, float64, UpdateUse::forward));
  const ProgramPtr p = update_program(max_p, int32, UpdateUse::forward);
  REQUIRE(p->eqns.size() == 1);
  CHECK(p->eqns[0].prim == &max_p);
}

TEST_CASE("scatter dimension numbers print as in JAX and can be read back") {
  const ScatterDimensionNumbers n{{0}, {}, {1, 0}, {}, {}};
  const std::string text =
      "ScatterDimensionNumbers(update_window_dims=(0,), inserted_window_dims=(), "
      "scatter_dims_to_operand_dims=(1, 0), operand_batching_dims=(), "
      "scatter_indices_batching_dims=())";
  CHECK(ScatterNumbers(n).text() == text);
  const Params params = scatter_params(nullptr, n, {});
  CHECK(scatter_p.parsed_params(params.with("dimension_numbers", text), {}, {}) == params);
  CHECK_THROWS_AS(parse_scatter_numbers("GatherDimensionNumbers()"), TypeError);
}

TEST_CASE("scatter refuses operands that do not fit") {
  const Array x = counting({4, 5}), i = array({{1}, {2}}), u = counting({2, 5});
  const ScatterDimensionNumbers n{{1}, {0}, {0}};
  CHECK(error_of<TypeError>([&] {
          lax::scatter(x, i, counting({3, 5}), n);
        })
            .starts_with("scatter: updates must have the shape (2, 5) for indices i32[2,1], got "
                         "f64[3,5]\n  at "));
  CHECK_THROWS_AS(lax::scatter(x, i, counting({2, 6}), n), TypeError);
  CHECK_THROWS_AS(lax::scatter(x, i, counting({2}), n), TypeError);
  CHECK_THROWS_AS(lax::scatter(x, i, array({{1, 2}, {3, 4}}), n), TypeError);
  CHECK_THROWS_AS(lax::scatter(x, array({{0.5}}), u, n), TypeError);
  CHECK_THROWS_AS(lax::scatter(x, i, u, {{1}, {0}, {0, 1}}), TypeError);
  CHECK_THROWS_AS(lax::scatter(x, i, u, {{1}, {}, {0}}), TypeError);
  CHECK_THROWS_AS(lax::scatter_add(x, array(1), u, n), TypeError);
  CHECK_THROWS_AS(scatter_p.bind({x, i}, scatter_params(nullptr, n, {})), TypeError);
}

}  // namespace
}  // namespace reprise
