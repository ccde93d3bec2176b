// Sliding windows: pooling, and what its derivatives are made of.
#include "ops/op_table.h"
#include "ops/records.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise::op_table {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using Combine = double (*)(double, double);

struct Window {
  const char* name;
  Shape in, out;
  lax::WindowDimensions dims;
};
std::vector<Window> windows() {
  return {{"of 2", {5}, {4}, {{2}, {1}, {{0, 0}}}},
          {"of 3 by 2", {4, 5}, {2, 3}, {{3, 2}, {1, 2}, {{0, 0}, {0, 1}}}},
          {"padded", {3, 3}, {2, 4}, {{2, 2}, {2, 1}, {{1, 0}, {1, 1}}}},
          {"cut", {5, 2}, {2, 2}, {{2, 1}, {1, 1}, {{-1, -1}, {0, 0}}}},
          {"with holes", {5}, {3}, {{2}, {1}, {{0, 0}}, {1}, {2}}},
          {"over holes", {3}, {4}, {{2}, {1}, {{0, 0}}, {2}, {1}}},
          {"larger than the array", {2}, {0}, {{3}, {1}, {{0, 0}}}},
          {"over nothing", {0, 2}, {0, 1}, {{1, 2}, {1, 1}, {{0, 0}, {0, 0}}}},
          {"of a scalar", {}, {}, {{}, {}, {}}}};
}
bool dilates(const lax::Ints& v) {
  return std::any_of(v.begin(), v.end(), [](std::int64_t d) { return d != 1; });
}
bool has_holes(const Window& w) {
  return dilates(w.dims.base_dilation) || dilates(w.dims.window_dilation);
}

// Calls f(input index) for every element under the window of an output; nullptr for padding, holes.
void visit(const Window& w, const Shape& out_index, const std::function<void(const Shape*)>& f) {
  for_each_index(w.dims.window_dimensions, [&](const Shape& k) {
    Shape at;
    bool is_inside = true;
    for (std::size_t d = 0; d < k.size(); ++d) {
      const std::int64_t base = w.dims.base_dilation.empty() ? 1 : w.dims.base_dilation[d];
      const std::int64_t hole = w.dims.window_dilation.empty() ? 1 : w.dims.window_dilation[d];
      const std::int64_t position =
          out_index[d] * w.dims.window_strides[d] + k[d] * hole - w.dims.padding[d].first;
      is_inside = is_inside && position >= 0 && position % base == 0 && position / base < w.in[d];
      at.push_back(position / base);
    }
    f(is_inside ? &at : nullptr);
  });
}

void add_pooling(Rows& rows, const Primitive& p, Array (*f)(Operand, const lax::WindowDimensions&),
                 double start, Combine combine, const In& in) {
  for (const Window& w : windows()) {
    In operand = in;
    operand.shape = w.in;
    const bool is_extreme = std::isinf(start);
    // The extreme of a window with holes has no transpose, as in JAX.
    const bool is_rough = is_extreme && dilates(w.dims.window_dilation);
    rows.push_back({.name = std::string(p.name) + " " + w.name,
                    .f = [=](const Arrays& x) { return Arrays{f(x[0], w.dims)}; },
                    .in = {operand},
                    .reference =
                        [=](const Many& x) {
                          return Many{tabulate(w.out, [&](const Shape& o) {
                            double result = start;
                            visit(w, o, [&](const Shape* i) {
                              if (i) result = combine(result, x[0].at(*i));
                            });
                            return result;
                          })};
                        },
                    .primitive = &p,
                    .dtypes = is_extreme ? floats : numbers,
                    .derivative = is_rough ? Derivative::none : Derivative::smooth,
                    .ulps = 16});
  }
}

// Where the largest or smallest element of a window is.
std::optional<Shape> selected(const Window& w, const Numbers& x, const Shape& o, bool largest) {
  std::optional<Shape> best;
  visit(w, o, [&](const Shape* i) {
    if (!i) return;
    const bool better = !best || (largest ? x.at(*i) > x.at(*best) : x.at(*i) < x.at(*best));
    if (better) best = *i;
  });
  return best;
}
Params selection_params(const Window& w, bool largest, bool with_dilation) {
  const lax::Ints ones(w.in.size(), 1);
  std::vector<lax::Ints> padding;
  for (const auto& [low, high] : w.dims.padding) padding.push_back({low, high});
  Params params = {{"padding", padding},
                   {"select_prim", std::string(largest ? "ge" : "le")},
                   {"window_dimensions", w.dims.window_dimensions},
                   {"window_strides", w.dims.window_strides}};
  if (!with_dilation) return params;
  return {{"base_dilation", ones},
          {"padding", padding},
          {"select_prim", std::string(largest ? "ge" : "le")},
          {"window_dilation", ones},
          {"window_dimensions", w.dims.window_dimensions},
          {"window_strides", w.dims.window_strides}};
}

void add_selections(Rows& rows, const Window& w, bool largest) {
  const std::string what =
      std::string(largest ? " of the largest, " : " of the smallest, ") + w.name;
  rows.push_back({.name = "select_and_gather_add" + what,
                  .f =
                      [=](const Arrays& x) {
                        return select_and_gather_add_p.bind(x, selection_params(w, largest, true));
                      },
                  .in = {{.shape = w.in}, {.shape = w.in, .fill = Fill::distinct}},
                  .reference =
                      [=](const Many& x) {
                        return Many{tabulate(w.out, [&](const Shape& o) {
                          const std::optional<Shape> best = selected(w, x[1], o, largest);
                          return best ? x[0].at(*best) : 0.0;
                        })};
                      },
                  .primitive = &select_and_gather_add_p});
  rows.push_back({.name = "select_and_scatter_add" + what,
                  .f =
                      [=](const Arrays& x) {
                        return select_and_scatter_add_p.bind(x,
                                                             selection_params(w, largest, false));
                      },
                  .in = {{.shape = w.out}, {.shape = w.in, .fill = Fill::distinct}},
                  .reference =
                      [=](const Many& x) {
                        Numbers sums = tabulate(w.in, [](const Shape&) { return 0.0; });
                        for_each_index(w.out, [&](const Shape& o) {
                          if (const auto best = selected(w, x[1], o, largest))
                            sums.at(*best) += x[0].at(o);
                        });
                        return Many{sums};
                      },
                  .primitive = &select_and_scatter_add_p,
                  .ulps = 16});
}

}  // namespace

Rows window_rows() {
  Rows rows;
  const In uniform{}, distinct{.fill = Fill::distinct};
  add_pooling(
      rows, reduce_window_sum_p, lax::reduce_window_sum, 0,
      [](double a, double b) { return a + b; }, uniform);
  add_pooling(
      rows, reduce_window_max_p, lax::reduce_window_max, -inf,
      [](double a, double b) { return a < b ? b : a; }, distinct);
  add_pooling(
      rows, reduce_window_min_p, lax::reduce_window_min, inf,
      [](double a, double b) { return b < a ? b : a; }, distinct);
  for (const Window& w : windows()) {
    if (has_holes(w)) continue;
    add_selections(rows, w, true);
    add_selections(rows, w, false);
  }
  return rows;
}

}  // namespace reprise::op_table
