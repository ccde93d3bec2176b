// Changing shapes, putting arrays together and taking them apart, in numpy style.
#include "ops/shape.h"

#include "base/dtype.h"
#include "control/call.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "reprise/ops_shape.h"

#include <algorithm>

namespace reprise {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Ints canonical_axes(const char* op, const Ints& axes, std::int64_t ndim) {
  Ints out;
  for (std::int64_t a : axes) out.push_back(canonical_axis(op, a, ndim));
  if (!all_unique(out)) fail<TypeError>(op, ": axes must be different, got ", python_tuple(axes));
  return out;
}

// The shape with -1 replaced by what is left.
Shape complete_shape(const Array& x, Shape shape) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open == shape.end()) return shape;
  *open = 1;
  const bool one_open = std::find(shape.begin(), shape.end(), -1) == shape.end();
  const bool valid = std::all_of(shape.begin(), shape.end(), [](std::int64_t d) { return d >= 0; });
  const std::int64_t known = one_open && valid ? element_count(shape) : 0;
  if (known == 0 || x.size() % known != 0) {
    *open = -1;
    fail<TypeError>("reshape: the open dimension -1 cannot be found, got ", x.type(),
                    " for the shape ", to_string(shape));
  }
  *open = x.size() / known;
  return shape;
}

Arrays promoted(const char* op, const Arrays& xs) {
  if (xs.empty()) fail<TypeError>(op, ": at least one array is needed, got none");
  return promote_dtypes(xs);
}

Array at_least(const char* name, const Array& x, std::int64_t ndim) {
  return jit_call1(
      name,
      [&](const Arrays& a) {
        const std::int64_t missing = std::max<std::int64_t>(ndim - a[0].ndim(), 0);
        return Arrays{missing > 0 ? lax::expand_dims(a[0], lax::iota_ints(missing)) : a[0]};
      },
      {x});
}

}  // namespace

// ------------------------------------------------------------------------------------------ shape
Array reshape(Operand x, Shape shape) {
  const AtUser scope(x.at);
  return lax::reshape(x, complete_shape(x.array, std::move(shape)));
}
Array Array::reshape(Shape shape, Location at_user) const {
  return reprise::reshape(Operand(*this, at_user), std::move(shape));
}
Array ravel(Operand x) { return lax::reshape(x, {x.array.size()}); }

Array transpose(Operand x) {
  const AtUser at(x.at);
  Ints reversed = lax::iota_ints(x.array.ndim());
  std::reverse(reversed.begin(), reversed.end());
  return lax::transpose(x, reversed);
}
Array transpose(Operand x, const Shape& axes) {
  const AtUser at(x.at);
  return lax::transpose(x, canonical_axes("transpose", axes, x.array.ndim()));
}
Array T(Operand x) { return transpose(std::move(x)); }
Array swapaxes(Operand x, std::int64_t axis1, std::int64_t axis2) {
  const AtUser scope(x.at);
  Ints permutation = lax::iota_ints(x.array.ndim());
  std::swap(permutation[at(canonical_axis("swapaxes", axis1, x.array.ndim()))],
            permutation[at(canonical_axis("swapaxes", axis2, x.array.ndim()))]);
  return lax::transpose(x, permutation);
}
Array moveaxis(Operand x, std::int64_t source, std::int64_t destination) {
  return moveaxis(std::move(x), Shape{source}, Shape{destination});
}
Array moveaxis(Operand x, const Shape& source, const Shape& destination) {
  const AtUser scope(x.at);
  if (source.size() != destination.size()) {
    fail<TypeError>("moveaxis: one destination is needed for each source, got ", to_string(source),
                    " and ", to_string(destination));
  }
  const Ints from = canonical_axes("moveaxis", source, x.array.ndim());
  const Ints to = canonical_axes("moveaxis", destination, x.array.ndim());
  Ints permutation;
  for (std::int64_t d : lax::iota_ints(x.array.ndim())) {
    if (std::find(from.begin(), from.end(), d) == from.end()) permutation.push_back(d);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> moves;
  for (std::size_t i = 0; i < to.size(); ++i) moves.emplace_back(to[i], from[i]);
  std::sort(moves.begin(), moves.end());
  for (const auto& [position, axis] : moves) {
    permutation.insert(permutation.begin() + position, axis);
  }
  return lax::transpose(x, permutation);
}

Array squeeze(Operand x, const ReduceAxes& axis) {
  const AtUser scope(x.at);
  if (axis.axes()) return lax::squeeze(x, *axis.axes());
  Ints ones;
  for (std::int64_t d : lax::iota_ints(x.array.ndim())) {
    if (x.array.shape(d) == 1) ones.push_back(d);
  }
  return lax::squeeze(x, ones);
}
Array expand_dims(Operand x, std::int64_t axis) { return lax::expand_dims(x, {axis}); }
Array expand_dims(Operand x, const Shape& axes) { return lax::expand_dims(x, axes); }

Array broadcast_to(Operand x, const Shape& shape) {
  const AtUser scope(x.at);
  const Shape& mine = x.array.shape();
  bool fits = mine.size() <= shape.size();
  for (std::size_t d = 0; fits && d < mine.size(); ++d) {
    fits = mine[d] == 1 || mine[d] == shape[shape.size() - mine.size() + d];
  }
  if (!fits) {
    fail<TypeError>("broadcast_to: the shape does not broadcast, got ", x.array.type(),
                    " for the shape ", to_string(shape));
  }
  return stretch_to(x, shape);
}
Array atleast_1d(Operand x) {
  const AtUser scope(x.at);
  return at_least("atleast_1d", x, 1);
}
Array atleast_2d(Operand x) {
  const AtUser scope(x.at);
  return at_least("atleast_2d", x, 2);
}

// ----------------------------------------------------------------------------- together and apart
Array concatenate(const Arrays& xs, std::int64_t axis, Location at_user) {
  const AtUser scope(at_user);
  const Arrays parts = promoted("concatenate", xs);
  return lax::concatenate(parts, canonical_axis("concatenate", axis, parts[0].ndim()));
}
Array stack(const Arrays& xs, std::int64_t axis, Location at_user) {
  const AtUser scope(at_user);
  return lax::stack(promoted("stack", xs), axis);
}
Array vstack(const Arrays& xs, Location at_user) {
  const AtUser scope(at_user);
  Arrays rows;
  for (const Array& x : xs) rows.push_back(atleast_2d(x));
  return concatenate(rows, 0);
}
Array hstack(const Arrays& xs, Location at_user) {
  const AtUser scope(at_user);
  Arrays parts;
  for (const Array& x : xs) parts.push_back(atleast_1d(x));
  return concatenate(parts, !parts.empty() && parts[0].ndim() == 1 ? 0 : 1);
}

Arrays split(Operand x, std::int64_t sections, std::int64_t axis) {
  const AtUser scope(x.at);
  axis = canonical_axis("split", axis, x.array.ndim());
  const std::int64_t size = x.array.shape(axis);
  if (sections <= 0 || size % sections != 0) {
    fail<TypeError>("split: the axis must divide into equal parts, got ", sections,
                    " parts of axis ", axis, " of ", x.array.type());
  }
  return lax::split(x, Ints(at(sections), size / sections), axis);
}
Arrays split(Operand x, std::initializer_list<std::int64_t> positions, std::int64_t axis) {
  return split(std::move(x), std::vector<std::int64_t>(positions), axis);
}
Arrays split(Operand x, const std::vector<std::int64_t>& positions, std::int64_t axis) {
  const AtUser scope(x.at);
  axis = canonical_axis("split", axis, x.array.ndim());
  Ints sizes;
  std::int64_t begin = 0;
  for (std::int64_t p : positions) {
    if (p < begin || p > x.array.shape(axis)) {
      fail<TypeError>("split: positions must be in order and inside axis ", axis, " of ",
                      x.array.type(), ", got ", python_tuple(positions));
    }
    sizes.push_back(p - begin);
    begin = p;
  }
  sizes.push_back(x.array.shape(axis) - begin);
  return lax::split(x, sizes, axis);
}
Arrays unstack(Operand x, std::int64_t axis) { return lax::unstack(x, axis); }

// ------------------------------------------------------------------------------------- repetition
Array repeat(Operand x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  const AtUser scope(x.at);
  if (repeats < 0) fail<TypeError>("repeat: the count must not be negative, got ", repeats);
  const Array row = axis ? x.array : ravel(x);
  const std::int64_t along = canonical_axis("repeat", axis.value_or(0), row.ndim());
  Shape shape = row.shape();
  shape.insert(shape.begin() + along + 1, repeats);
  Ints dims = skip_axis(lax::iota_ints(row.ndim()), along + 1);
  const Array copies = lax::broadcast_in_dim(row, shape, dims);
  Shape result = row.shape();
  if (__builtin_mul_overflow(result[at(along)], repeats, &result[at(along)])) {
    fail<TypeError>("repeat: too many elements, got ", repeats, " copies of ", row.type());
  }
  return lax::reshape(copies, result);
}

Array tile(Operand x, std::int64_t reps) { return tile(std::move(x), Shape{reps}); }
Array tile(Operand x, const Shape& reps) {
  const AtUser scope(x.at);
  Ints counts = reps;
  const std::int64_t extra = static_cast<std::int64_t>(reps.size()) - x.array.ndim();
  if (extra < 0) counts.insert(counts.begin(), at(-extra), 1);
  const Array grown = extra > 0 ? lax::expand_dims(x, lax::iota_ints(extra)) : x.array;
  return lax::tile(grown, counts);
}

Array flip(Operand x, const ReduceAxes& axis) {
  const AtUser scope(x.at);
  const std::int64_t ndim = x.array.ndim();
  const Ints axes = axis.axes() ? canonical_axes("flip", *axis.axes(), ndim) : lax::iota_ints(ndim);
  return jit_call1("_flip", [&](const Arrays& a) { return Arrays{lax::rev(a[0], axes)}; },
                   {x.array});
}

namespace {

Array part_of(const Array& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  Ints start(at(x.ndim()), 0), limit = x.shape();
  start[at(axis)] = begin;
  limit[at(axis)] = end;
  return lax::slice(x, start, limit, Ints(at(x.ndim()), 1));
}
// The part after the cut, then the part before it.
Array rolled(Array x, std::int64_t shift, std::int64_t axis) {
  const std::int64_t size = x.shape(axis);
  if (size == 0) return x;
  const std::int64_t by = shift % size;
  const std::int64_t cut = by > 0 ? size - by : -by;
  const Array last = part_of(x, axis, cut, size);
  const Array first = part_of(x, axis, 0, cut);
  return lax::concatenate({last, first}, axis);
}

}  // namespace

Array roll(Operand x, std::int64_t shift, std::optional<std::int64_t> axis) {
  const AtUser scope(x.at);
  if (axis) return roll(x, Shape{shift}, Shape{*axis});
  const Array row = ravel(x);
  const Array moved = roll(row, Shape{shift}, Shape{0});
  return lax::reshape(moved, x.array.shape());
}
Array roll(Operand x, const Shape& shifts, const Shape& axes) {
  const AtUser scope(x.at);
  if (shifts.size() != axes.size()) {
    fail<TypeError>("roll: one shift is needed for each axis, got ", to_string(shifts),
                    " and axes ", to_string(axes));
  }
  Ints along;
  for (std::int64_t a : axes) along.push_back(canonical_axis("roll", a, x.array.ndim()));
  return jit_call1("_roll_static",
                   [&](const Arrays& a) {
                     Array y = a[0];
                     for (std::size_t i = 0; i < along.size(); ++i)
                       y = rolled(y, shifts[i], along[i]);
                     return Arrays{y};
                   },
                   {x.array});
}

Array pad(Operand x, std::int64_t width, Operand value) {
  return pad(std::move(x), PadWidths{{width, width}}, std::move(value));
}
Array pad(Operand x, const PadWidths& widths, Operand value) {
  const AtUser scope(x.at);
  std::vector<lax::PadDimension> config;
  for (const auto& [before, after] : widths) {
    if (before < 0 || after < 0) {
      fail<TypeError>("pad: widths must not be negative, got (", before, ", ", after, ")");
    }
    config.push_back({before, after, 0});
  }
  const std::size_t ndim = x.array.shape().size();
  if (config.size() == 1) config.assign(ndim, lax::PadDimension(config[0]));
  if (config.size() != ndim) {
    fail<TypeError>("pad: one pair of widths is needed for each dimension of ", x.array.type(),
                    ", got ", widths.size());
  }
  return jit_call1("_pad",
                   [&](const Arrays& a) {
                     const Array filling = lax::convert(a[1], a[0].dtype());
                     return Arrays{lax::pad_in_rule(a[0], filling, config, 2 * a[0].ndim())};
                   },
                   {x.array, value.array});
}

}  // namespace reprise
