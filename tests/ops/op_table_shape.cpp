// Other arrangements of the same elements.
#include "ops/op_table.h"
#include "ops/records.h"

namespace reprise::op_table {
namespace {

// A row whose result has its elements from x[0]: out[i] = x[from(i)].
struct Moved {
  std::string name;
  const Primitive* primitive;
  std::function<Array(const Array&)> f;
  Shape in, out;
  std::function<Shape(const Shape&)> from;
};
Row row_of(const Moved& m) {
  return {.name = m.name + " of " + to_string(Type{float64, m.in}),
          .f = [f = m.f](const Arrays& x) { return Arrays{f(x[0])}; },
          .in = {{.shape = m.in}},
          .reference =
              [out = m.out, from = m.from](const Many& x) {
                return Many{tabulate(out, [&](const Shape& i) { return x[0].at(from(i)); })};
              },
          .primitive = m.primitive,
          .dtypes = everything,
          .ulps = 0};
}

// The index with the same row-major position in another shape.
Shape same_position(const Shape& index, const Shape& shape, const Shape& other) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + index[d];
  Shape result(other.size());
  for (std::size_t d = other.size(); d-- > 0;) {
    result[d] = position % other[d];
    position /= other[d];
  }
  return result;
}

void add_broadcasts(Rows& rows) {
  const auto broadcast = [&](const Shape& in, const Shape& out, const lax::Ints& dims) {
    rows.push_back(
        row_of({"broadcast_in_dim to " + to_string(Type{float64, out}), &broadcast_in_dim_p,
                [=](const Array& x) { return lax::broadcast_in_dim(x, out, dims); }, in, out,
                [=](const Shape& i) {
                  Shape at;
                  for (std::size_t k = 0; k < dims.size(); ++k) {
                    const std::int64_t d = i[static_cast<std::size_t>(dims[k])];
                    at.push_back(in[k] == 1 ? 0 : d);
                  }
                  return at;
                }}));
  };
  broadcast({}, {2, 3}, {});
  broadcast({}, {0}, {});
  broadcast({3}, {2, 3}, {1});
  broadcast({2}, {2, 3}, {0});
  broadcast({2, 1}, {2, 4, 3}, {0, 2});
  broadcast({1}, {0, 2}, {1});
  broadcast({0}, {0, 2}, {0});
  broadcast({2, 3}, {2, 3, 1}, {0, 1});
}

void add_reshapes(Rows& rows) {
  const auto reshape = [&](const Shape& in, const Shape& out) {
    rows.push_back(row_of({"reshape to " + to_string(Type{float64, out}), &reshape_p,
                           [=](const Array& x) { return lax::reshape(x, out); }, in, out,
                           [=](const Shape& i) { return same_position(i, out, in); }}));
  };
  reshape({2, 3}, {6});
  reshape({2, 3}, {3, 2});
  reshape({4, 3}, {2, 2, 3});
  reshape({1, 1}, {});
  reshape({}, {1, 1});
  reshape({0, 3}, {2, 0});
}

void add_transposes(Rows& rows) {
  const auto transpose = [&](const Shape& in, const lax::Ints& order) {
    Shape out;
    std::string text;
    for (std::int64_t d : order) {
      out.push_back(in[static_cast<std::size_t>(d)]);
      text += " " + std::to_string(d);
    }
    rows.push_back(row_of({"transpose" + text, &transpose_p,
                           [=](const Array& x) { return lax::transpose(x, order); }, in, out,
                           [=](const Shape& i) {
                             Shape at(i.size());
                             for (std::size_t k = 0; k < i.size(); ++k) {
                               at[static_cast<std::size_t>(order[k])] = i[k];
                             }
                             return at;
                           }}));
  };
  transpose({2, 3}, {1, 0});
  transpose({2, 3, 4}, {2, 0, 1});
  transpose({2, 3, 4}, {1, 0, 2});
  transpose({2, 0, 4}, {2, 1, 0});
}

void add_squeezes(Rows& rows) {
  const auto squeeze = [&](const Shape& in, const lax::Ints& dims, const Shape& out) {
    rows.push_back(row_of({"squeeze to " + to_string(Type{float64, out}), &squeeze_p,
                           [=](const Array& x) { return lax::squeeze(x, dims); }, in, out,
                           [=](const Shape& i) { return same_position(i, out, in); }}));
  };
  squeeze({2, 1, 3}, {1}, {2, 3});
  squeeze({1, 2, 1}, {0, 2}, {2});
  squeeze({1, 1}, {0, 1}, {});
  squeeze({1, 0}, {0}, {0});
  rows.push_back(row_of({"expand_dims",
                         &broadcast_in_dim_p,
                         [](const Array& x) {
                           return lax::expand_dims(x, {0, 2});
                         },
                         {2, 3},
                         {1, 2, 1, 3},
                         [](const Shape& i) {
                           return Shape{i[1], i[3]};
                         }}));
}

void add_reversals(Rows& rows) {
  const auto rev = [&](const Shape& in, const lax::Ints& dims) {
    rows.push_back(row_of({"rev of " + std::to_string(dims.size()) + " axes", &rev_p,
                           [=](const Array& x) { return lax::rev(x, dims); }, in, in,
                           [=](Shape i) {
                             for (std::int64_t d : dims) {
                               const auto k = static_cast<std::size_t>(d);
                               i[k] = in[k] - 1 - i[k];
                             }
                             return i;
                           }}));
  };
  rev({5}, {0});
  rev({2, 3}, {1});
  rev({2, 3, 2}, {0, 2});
  rev({0, 3}, {0, 1});
}

void add_slices(Rows& rows) {
  const auto slice = [&](const Shape& in, const lax::Ints& start, const lax::Ints& limit,
                         const lax::Ints& strides) {
    Shape out;
    for (std::size_t d = 0; d < in.size(); ++d) {
      out.push_back((limit[d] - start[d] + strides[d] - 1) / strides[d]);
    }
    rows.push_back(
        row_of({"slice to " + to_string(Type{float64, out}), &slice_p,
                [=](const Array& x) { return lax::slice(x, start, limit, strides); }, in, out,
                [=](Shape i) {
                  for (std::size_t d = 0; d < i.size(); ++d) {
                    i[d] = start[d] + strides[d] * i[d];
                  }
                  return i;
                }}));
  };
  slice({5}, {1}, {4}, {1});
  slice({5}, {1}, {5}, {2});
  slice({4, 6}, {1, 0}, {3, 6}, {1, 4});
  slice({4, 6}, {2, 1}, {2, 5}, {1, 3});
  slice({0, 2}, {0, 1}, {0, 2}, {1, 1});
}

// Negative starts count from the end; then the window moves inside.
std::int64_t clamped_start(double start, std::int64_t size, std::int64_t window) {
  const std::int64_t most = size - window;
  const auto from = static_cast<std::int64_t>(start < 0 ? start + double(size) : start);
  return from < 0 ? 0 : from > most ? most : from;
}

void add_dynamic_slices(Rows& rows) {
  for (const double start : {1.0, -3.0, -7.0, 9.0}) {
    const In first{.shape = {}, .dtype = int32, .fixed = {start, 0, 2}};
    const In second{.shape = {}, .dtype = int32, .fixed = {2, 1, 5}};
    rows.push_back({.name = "dynamic_slice from " + std::to_string(static_cast<int>(start)),
                    .f =
                        [](const Arrays& x) {
                          return Arrays{lax::dynamic_slice(x[0], {x[1], x[2]}, {2, 3})};
                        },
                    .in = {{.shape = {4, 5}}, first, second},
                    .reference =
                        [](const Many& x) {
                          const std::int64_t i0 = clamped_start(x[1].values[0], 4, 2);
                          const std::int64_t j0 = clamped_start(x[2].values[0], 5, 3);
                          return Many{tabulate({2, 3}, [&](const Shape& i) {
                            return x[0].at({i0 + i[0], j0 + i[1]});
                          })};
                        },
                    .primitive = &dynamic_slice_p,
                    .dtypes = everything,
                    .ulps = 0});
    rows.push_back({.name = "dynamic_update_slice at " + std::to_string(static_cast<int>(start)),
                    .f =
                        [](const Arrays& x) {
                          return Arrays{lax::dynamic_update_slice(x[0], x[1], {x[2], x[3]})};
                        },
                    .in = {{.shape = {4, 5}}, {.shape = {2, 3}}, first, second},
                    .reference =
                        [](const Many& x) {
                          const std::int64_t i0 = clamped_start(x[2].values[0], 4, 2);
                          const std::int64_t j0 = clamped_start(x[3].values[0], 5, 3);
                          Numbers result = x[0];
                          for_each_index(x[1].shape, [&](const Shape& i) {
                            result.at({i0 + i[0], j0 + i[1]}) = x[1].at(i);
                          });
                          return Many{result};
                        },
                    .primitive = &dynamic_update_slice_p,
                    .dtypes = everything,
                    .ulps = 0});
  }
}
void add_small_slices(Rows& rows) {
  const In index{.shape = {}, .dtype = int32, .fixed = {1}};
  rows.push_back(
      {.name = "dynamic_slice of nothing",
       .f = [](const Arrays& x) { return Arrays{lax::dynamic_slice(x[0], {x[1]}, {0})}; },
       .in = {{.shape = {3}}, index},
       .reference =
           [](const Many&) {
             return Many{{{0}, {}}};
           },
       .primitive = &dynamic_slice_p,
       .variants = {{{0}, {}}}});
  rows.push_back(
      {.name = "dynamic_update_slice of nothing",
       .f = [](const Arrays& x) { return Arrays{lax::dynamic_update_slice(x[0], x[1], {x[2]})}; },
       .in = {{.shape = {3}}, {.shape = {0}}, index},
       .reference = [](const Many& x) { return Many{x[0]}; },
       .primitive = &dynamic_update_slice_p,
       .variants = {{{0}, {0}, {}}}});
  rows.push_back({.name = "dynamic_slice of a scalar",
                  .f = [](const Arrays& x) { return Arrays{lax::dynamic_slice(x[0], {}, {})}; },
                  .in = {{.shape = {}}},
                  .reference = [](const Many& x) { return Many{x[0]}; },
                  .primitive = &dynamic_slice_p});
}

}  // namespace

Rows shape_rows() {
  Rows rows;
  add_broadcasts(rows);
  add_reshapes(rows);
  add_transposes(rows);
  add_squeezes(rows);
  add_reversals(rows);
  add_slices(rows);
  add_dynamic_slices(rows);
  add_small_slices(rows);
  return rows;
}

}  // namespace reprise::op_table
