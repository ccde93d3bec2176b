// Gather and scatter in every way to address windows, sorting and searching.
#include "ops/index_reference.h"
#include "ops/op_table.h"
#include "ops/records.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reprise::op_table {
namespace {

Array as_f64(const Numbers& x) { return array(x.values, x.shape); }
Array as_i64(const Numbers& x) { return as_f64(x).astype(int64); }

In indices_of(const WindowCase& c) {
  return {.shape = c.indices.shape(), .dtype = int32, .fixed = c.indices.to_vector<double>()};
}
const char* text_of(GatherScatterMode mode) {
  switch (mode) {
    case GatherScatterMode::clip: return "clip";
    case GatherScatterMode::fill_or_drop: return "fill or drop";
    case GatherScatterMode::promise_in_bounds: return "promise in bounds";
  }
  return "";
}

void add_gathers(Rows& rows) {
  constexpr double fill = 1;
  for (const WindowCase& c : window_cases()) {
    for (const auto mode : {GatherScatterMode::clip, GatherScatterMode::fill_or_drop,
                            GatherScatterMode::promise_in_bounds}) {
      if (mode == GatherScatterMode::promise_in_bounds && c.reaches_outside) continue;
      const lax::GatherOptions options{.mode = mode, .fill_value = fill};
      const bool fills = mode == GatherScatterMode::fill_or_drop;
      rows.push_back({.name = "gather " + c.name + ", " + text_of(mode),
                      .f =
                          [=](const Arrays& x) {
                            return Arrays{lax::gather(x[0], x[1], c.numbers, c.sizes, options)};
                          },
                      .in = {{.shape = c.operand}, indices_of(c)},
                      .reference =
                          [=](const Many& x) {
                            return Many{
                                {c.windows, gather_reference(as_f64(x[0]), as_i64(x[1]), c.numbers,
                                                             c.sizes, c.windows, fills, fill)}};
                          },
                      .primitive = &gather_p,
                      .dtypes = everything,
                      .ulps = 0});
    }
  }
  rows.push_back({.name = "gather from nothing, filled",
                  .f =
                      [](const Arrays& x) {
                        const lax::GatherDimensionNumbers rows_of{{1}, {}, {0}};
                        return Arrays{lax::gather(x[0], x[1], rows_of, {0},
                                                  {.mode = GatherScatterMode::fill_or_drop})};
                      },
                  .in = {{.shape = {0}}, {.shape = {2, 1}, .dtype = int32, .fixed = {0, 1}}},
                  .reference =
                      [](const Many&) {
                        return Many{{{2, 0}, {}}};
                      },
                  .primitive = &gather_p});
}

struct Update {
  const Primitive& primitive;
  Array (*f)(Operand, Operand, Operand, const lax::ScatterDimensionNumbers&,
             const lax::ScatterOptions&);
  double (*combine)(double, double);
};
Row scatter_row(const WindowCase& c, const Update& u, GatherScatterMode mode) {
  const GatherDimensionNumbers& g = c.numbers;
  const lax::ScatterDimensionNumbers n{g.offset_dims, g.collapsed_slice_dims, g.start_index_map,
                                       g.operand_batching_dims, g.start_indices_batching_dims};
  const lax::ScatterOptions options{.mode = mode, .unique_indices = !c.overlaps};
  const bool clips = mode == GatherScatterMode::clip;
  // Without a derivative, as in JAX: repeated products have no rule; that of clipped extremes
  // counts the winners without clipping and divides by zero.
  const bool multiplies = &u.primitive == &scatter_mul_p;
  const bool is_extreme = &u.primitive == &scatter_min_p || &u.primitive == &scatter_max_p;
  const bool is_rough = (multiplies && c.overlaps) || (is_extreme && clips && c.reaches_outside);
  return {.name = std::string(u.primitive.name) + " " + c.name + ", " + text_of(mode),
          .f = [=](const Arrays& x) { return Arrays{u.f(x[0], x[1], x[2], n, options)}; },
          .in = {{.shape = c.operand, .fill = Fill::distinct}, indices_of(c), {.shape = c.windows}},
          .reference =
              [=](const Many& x) {
                return Many{{c.operand, scatter_reference(as_f64(x[0]), as_i64(x[1]), as_f64(x[2]),
                                                          c.numbers, c.sizes, clips, u.combine)}};
              },
          .primitive = &u.primitive,
          .dtypes = numbers,
          .derivative = is_rough ? Derivative::none : Derivative::smooth,
          .ulps = 16};
}
void add_scatters(Rows& rows) {
  const Update updates[] = {
      {scatter_p, lax::scatter, [](double, double b) { return b; }},
      {scatter_add_p, lax::scatter_add, [](double a, double b) { return a + b; }},
      {scatter_mul_p, lax::scatter_mul, [](double a, double b) { return a * b; }},
      {scatter_min_p, lax::scatter_min, [](double a, double b) { return b < a ? b : a; }},
      {scatter_max_p, lax::scatter_max, [](double a, double b) { return a < b ? b : a; }}};
  for (const WindowCase& c : window_cases()) {
    for (const Update& u : updates) {
      rows.push_back(scatter_row(c, u, GatherScatterMode::fill_or_drop));
      rows.push_back(scatter_row(c, u, GatherScatterMode::clip));
    }
  }
}

// ------------------------------------------------------------------------------- sort, top_k, arg
// The positions along an axis of one run, in the order of a comparison of positions.
using Before = std::function<bool(const Shape&, const Shape&)>;
Numbers ranked(const Shape& shape, std::size_t axis, const Before& before) {
  Numbers order{shape, std::vector<double>(static_cast<std::size_t>(count_of(shape)))};
  for_each_index(shape, [&](const Shape& index) {
    if (index[axis] != 0) return;
    std::vector<std::int64_t> run(static_cast<std::size_t>(shape[axis]));
    std::iota(run.begin(), run.end(), 0);
    std::stable_sort(run.begin(), run.end(), [&](std::int64_t a, std::int64_t b) {
      Shape i = index, j = index;
      i[axis] = a;
      j[axis] = b;
      return before(i, j);
    });
    Shape to = index;
    for (std::int64_t from : run) {
      order.at(to) = static_cast<double>(from);
      ++to[axis];
    }
  });
  return order;
}
Numbers taken(const Numbers& x, const Numbers& order, std::size_t axis) {
  return tabulate(order.shape, [&](const Shape& i) {
    Shape from = i;
    from[axis] = static_cast<std::int64_t>(order.at(i));
    return x.at(from);
  });
}

void add_sorts(Rows& rows) {
  for (const std::size_t axis : {0u, 1u}) {
    const auto dimension = static_cast<std::int64_t>(axis);
    rows.push_back({.name = "sort along " + std::to_string(axis),
                    .f = [=](const Arrays& x) { return lax::sort(x, dimension); },
                    .in = {{.shape = {3, 4}, .fill = Fill::distinct}},
                    .reference =
                        [=](const Many& x) {
                          const Numbers order =
                              ranked(x[0].shape, axis, [&](const Shape& i, const Shape& j) {
                                return x[0].at(i) < x[0].at(j);
                              });
                          return Many{taken(x[0], order, axis)};
                        },
                    .primitive = &sort_p,
                    .dtypes = everything,
                    .ulps = 0,
                    .variants = {{{0, 2}}, {{2, 0}}, {{1, 1}}}});
    rows.push_back({.name = "sort of pairs by one key along " + std::to_string(axis),
                    .f = [=](const Arrays& x) { return lax::sort(x, dimension, 1); },
                    .in = {{.shape = {3, 4}, .fill = Fill::distinct}, {.shape = {3, 4}}},
                    .reference =
                        [=](const Many& x) {
                          const Numbers order =
                              ranked(x[0].shape, axis, [&](const Shape& i, const Shape& j) {
                                return x[0].at(i) < x[0].at(j);
                              });
                          return Many{taken(x[0], order, axis), taken(x[1], order, axis)};
                        },
                    .primitive = &sort_p,
                    .dtypes = numbers,
                    .ulps = 0});
  }
}
void add_special_sorts(Rows& rows) {
  rows.push_back(
      {.name = "sort by two keys",
       .f = [](const Arrays& x) { return lax::sort(x, 0, 2); },
       .in = {{.shape = {6}, .dtype = int32, .fixed = {2, 1, 2, 1, 1, 2}},
              {.shape = {6}, .fill = Fill::distinct},
              {.shape = {6}}},
       .reference =
           [](const Many& x) {
             const Numbers order = ranked(x[0].shape, 0, [&](const Shape& i, const Shape& j) {
               if (x[0].at(i) != x[0].at(j)) return x[0].at(i) < x[0].at(j);
               return x[1].at(i) < x[1].at(j);
             });
             return Many{taken(x[0], order, 0), taken(x[1], order, 0), taken(x[2], order, 0)};
           },
       .primitive = &sort_p,
       .ulps = 0});
  rows.push_back({.name = "sort with NaN",
                  .f = [](const Arrays& x) { return lax::sort(x, 0); },
                  .in = {{.shape = {6}, .fixed = {2, NAN, -INFINITY, 0.5, NAN, INFINITY}}},
                  .reference =
                      [](const Many&) {
                        return Many{{{6}, {-INFINITY, 0.5, 2, INFINITY, NAN, NAN}}};
                      },
                  .primitive = &sort_p,
                  .derivative = Derivative::none,
                  .ulps = 0});
}

void add_top_k(Rows& rows) {
  for (const std::int64_t k : {0, 2, 4}) {
    rows.push_back({.name = "top_k of " + std::to_string(k),
                    .f =
                        [=](const Arrays& x) {
                          const auto [values, indices] = lax::top_k(x[0], k);
                          return Arrays{values, indices};
                        },
                    .in = {{.shape = {3, 4}, .fill = Fill::distinct}},
                    .reference =
                        [=](const Many& x) {
                          const std::size_t axis = x[0].shape.size() - 1;
                          const Numbers all =
                              ranked(x[0].shape, axis, [&](const Shape& i, const Shape& j) {
                                return x[0].at(i) > x[0].at(j);
                              });
                          Shape shape = x[0].shape;
                          shape[axis] = k;
                          const Numbers first =
                              tabulate(shape, [&](const Shape& i) { return all.at(i); });
                          return Many{taken(x[0], first, axis), first};
                        },
                    .primitive = &top_k_p,
                    .dtypes = numbers,
                    .ulps = 0,
                    .variants = {{{4}}, {{0, 4}}}});
  }
}

void add_arg(Rows& rows, const Primitive& p, Array (*f)(Operand, std::int64_t, Dtype),
             bool (*better)(double, double)) {
  for (const std::size_t axis : {0u, 1u}) {
    for (const Dtype index : {int32, uint8}) {
      rows.push_back(
          {.name = std::string(p.name) + " along " + std::to_string(axis) + " as " +
                   std::string(short_name(index)),
           .f =
               [=](const Arrays& x) {
                 return Arrays{f(x[0], static_cast<std::int64_t>(axis), index)};
               },
           .in = {{.shape = {3, 4}, .fill = Fill::distinct}},
           .reference =
               [=](const Many& x) {
                 const Numbers order =
                     ranked(x[0].shape, axis, [&](const Shape& i, const Shape& j) {
                       return better(x[0].at(i), x[0].at(j));
                     });
                 Shape shape = x[0].shape;
                 shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
                 return Many{tabulate(shape, [&](Shape i) {
                   i.insert(i.begin() + static_cast<std::ptrdiff_t>(axis), 0);
                   return order.at(i);
                 })};
               },
           .primitive = &p,
           .dtypes = everything,
           .derivative = Derivative::none,
           .variants = {axis == 0 ? std::vector<Shape>{{3, 0}} : std::vector<Shape>{{0, 3}}}});
    }
  }
}

}  // namespace

Rows index_rows() {
  Rows rows;
  add_gathers(rows);
  add_scatters(rows);
  add_sorts(rows);
  add_special_sorts(rows);
  add_top_k(rows);
  add_arg(rows, argmax_p, lax::argmax, [](double a, double b) { return a > b; });
  add_arg(rows, argmin_p, lax::argmin, [](double a, double b) { return a < b; });
  return rows;
}

}  // namespace reprise::op_table
