// Arrays put together and taken apart.
#include "ops/op_table.h"
#include "ops/records.h"

namespace reprise::op_table {
namespace {

std::int64_t& at_axis(Shape& s, std::int64_t axis) { return s[static_cast<std::size_t>(axis)]; }

std::vector<In> operands_of(const std::vector<Shape>& shapes) {
  std::vector<In> in;
  for (const Shape& s : shapes) in.push_back({.shape = s});
  return in;
}

void add_concatenates(Rows& rows) {
  const auto concatenate = [&](const char* what, const std::vector<Shape>& shapes,
                               std::int64_t axis) {
    rows.push_back({.name = std::string("concatenate ") + what,
                    .f = [axis](const Arrays& x) { return Arrays{lax::concatenate(x, axis)}; },
                    .in = operands_of(shapes),
                    .reference =
                        [axis](const Many& x) {
                          Shape shape = x[0].shape;
                          for (std::size_t k = 1; k < x.size(); ++k) {
                            at_axis(shape, axis) += x[k].shape[static_cast<std::size_t>(axis)];
                          }
                          return Many{tabulate(shape, [&](Shape i) {
                            std::size_t k = 0;
                            while (at_axis(i, axis) >= x[k].shape[static_cast<std::size_t>(axis)]) {
                              at_axis(i, axis) -= x[k++].shape[static_cast<std::size_t>(axis)];
                            }
                            return x[k].at(i);
                          })};
                        },
                    .primitive = &concatenate_p,
                    .dtypes = everything,
                    .ulps = 0});
  };
  concatenate("rows", {{2, 3}, {1, 3}, {4, 3}}, 0);
  concatenate("columns", {{2, 3}, {2, 1}}, 1);
  concatenate("with nothing", {{2, 3}, {2, 0}}, 1);
  concatenate("of nothing", {{0}, {0}}, 0);
}

void add_stacks(Rows& rows) {
  for (std::int64_t axis : {0, 1, 2}) {
    rows.push_back({.name = "stack along " + std::to_string(axis),
                    .f = [axis](const Arrays& x) { return Arrays{lax::stack(x, axis)}; },
                    .in = operands_of({{2, 3}, {2, 3}}),
                    .reference =
                        [axis](const Many& x) {
                          Shape shape = x[0].shape;
                          shape.insert(shape.begin() + axis, 2);
                          return Many{tabulate(shape, [&](Shape i) {
                            const std::int64_t k = at_axis(i, axis);
                            i.erase(i.begin() + axis);
                            return x[static_cast<std::size_t>(k)].at(i);
                          })};
                        },
                    .primitive = &stack_p,
                    .dtypes = everything,
                    .ulps = 0,
                    .variants = axis == 0 ? scalar_and_empty(2)
                                          : std::vector<std::vector<Shape>>{{{0, 3}, {0, 3}}}});
    if (axis == 2) continue;
    rows.push_back({.name = "unstack along " + std::to_string(axis),
                    .f = [axis](const Arrays& x) { return lax::unstack(x[0], axis); },
                    .in = {{.shape = {3, 2}}},
                    .reference =
                        [axis](const Many& x) {
                          Shape shape = x[0].shape;
                          const std::int64_t n = at_axis(shape, axis);
                          shape.erase(shape.begin() + axis);
                          Many parts;
                          for (std::int64_t k = 0; k < n; ++k) {
                            parts.push_back(tabulate(shape, [&](Shape i) {
                              i.insert(i.begin() + axis, k);
                              return x[0].at(i);
                            }));
                          }
                          return parts;
                        },
                    .primitive = &unstack_p,
                    .dtypes = everything,
                    .ulps = 0,
                    .variants = axis == 0 ? std::vector<std::vector<Shape>>{{{2}}, {{2, 0}}}
                                          : std::vector<std::vector<Shape>>{{{0, 2}}}});
  }
}

void add_splits(Rows& rows) {
  const auto split = [&](const Shape& in, const lax::Ints& sizes, std::int64_t axis) {
    rows.push_back({.name = "split of " + to_string(Type{float64, in}),
                    .f = [=](const Arrays& x) { return lax::split(x[0], sizes, axis); },
                    .in = {{.shape = in}},
                    .reference =
                        [=](const Many& x) {
                          Many parts;
                          std::int64_t start = 0;
                          for (std::int64_t size : sizes) {
                            Shape shape = x[0].shape;
                            at_axis(shape, axis) = size;
                            parts.push_back(tabulate(shape, [&](Shape i) {
                              at_axis(i, axis) += start;
                              return x[0].at(i);
                            }));
                            start += size;
                          }
                          return parts;
                        },
                    .primitive = &split_p,
                    .dtypes = everything,
                    .ulps = 0});
  };
  split({6}, {2, 1, 3}, 0);
  split({2, 5}, {3, 2}, 1);
  split({3, 2}, {0, 3}, 0);
  split({0, 2}, {0, 0}, 0);
}

void add_tiles(Rows& rows) {
  const auto tile = [&](const Shape& in, const lax::Ints& reps) {
    rows.push_back({.name = "tile of " + to_string(Type{float64, in}),
                    .f = [=](const Arrays& x) { return Arrays{lax::tile(x[0], reps)}; },
                    .in = {{.shape = in}},
                    .reference =
                        [=](const Many& x) {
                          Shape shape = in;
                          for (std::size_t d = 0; d < in.size(); ++d) shape[d] *= reps[d];
                          return Many{tabulate(shape, [&](Shape i) {
                            for (std::size_t d = 0; d < in.size(); ++d) i[d] %= in[d];
                            return x[0].at(i);
                          })};
                        },
                    .primitive = &tile_p,
                    .dtypes = everything,
                    .ulps = 0});
  };
  tile({3}, {2});
  tile({2, 3}, {3, 2});
  tile({0, 2}, {2, 2});
  tile({2, 2}, {1, 0});
}

// By definition: element i of the input lands at low + i * (interior + 1), if that is inside.
Numbers padded(const Numbers& x, double value, const std::vector<lax::PadDimension>& config) {
  Shape shape;
  for (std::size_t d = 0; d < config.size(); ++d) {
    const std::int64_t n = x.shape[d], holes = n > 0 ? (n - 1) * config[d].interior : 0;
    shape.push_back(config[d].low + n + holes + config[d].high);
  }
  Numbers result = tabulate(shape, [&](const Shape&) { return value; });
  for_each_index(x.shape, [&](const Shape& i) {
    Shape to;
    bool is_inside = true;
    for (std::size_t d = 0; d < config.size(); ++d) {
      to.push_back(config[d].low + i[d] * (config[d].interior + 1));
      is_inside = is_inside && 0 <= to[d] && to[d] < shape[d];
    }
    if (is_inside) result.at(to) = x.at(i);
  });
  return result;
}
void add_pads(Rows& rows) {
  const auto pad = [&](const char* what, const Shape& in,
                       const std::vector<lax::PadDimension>& config) {
    rows.push_back(
        {.name = std::string("pad ") + what,
         .f = [=](const Arrays& x) { return Arrays{lax::pad(x[0], x[1], config)}; },
         .in = {{.shape = in}, {.shape = {}}},
         .reference = [=](const Many& x) { return Many{padded(x[0], x[1].values[0], config)}; },
         .primitive = &pad_p,
         .dtypes = everything,
         .ulps = 0});
  };
  pad("around", {2, 3}, {{1, 2, 0}, {0, 1, 0}});
  pad("between", {2, 3}, {{0, 0, 1}, {1, 0, 2}});
  pad("by less than nothing", {4, 3}, {{-1, -2, 0}, {-1, 2, 0}});
  pad("between and cut", {4}, {{-1, -2, 2}});
  pad("around nothing", {0, 2}, {{2, 1, 0}, {0, 0, 0}});
  pad("of a scalar", {}, {});
}

}  // namespace

Rows join_rows() {
  Rows rows;
  add_concatenates(rows);
  add_stacks(rows);
  add_splits(rows);
  add_tiles(rows);
  add_pads(rows);
  return rows;
}

}  // namespace reprise::op_table
