// Shapes and indexing, in numpy style with the names of jax.numpy.
//
//   rp::Array y = rp::transpose(x.reshape({2, -1}));
//   rp::Array row = x[0], last = x[-1], block = x(rp::slice(1, 3), rp::all), picked = x[indices];
//   rp::Array z = x.at(0).set(1.0);          // a new array; x stays as it is
//
// Axes count from the end when negative. Arguments that do not fit give a TypeError with the line.
#pragma once

#include "reprise/array.h"
#include "reprise/lax.h"
#include "reprise/ops_reduce.h"

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// ------------------------------------------------------------------------------------------ shape
Array reshape(Operand x, Shape shape);  // one dimension may be -1: what is left
Array ravel(Operand x);                 // all elements in one dimension, row by row
Array transpose(Operand x);             // the axes reversed
Array transpose(Operand x, const Shape& axes);
Array T(Operand x);
Array swapaxes(Operand x, std::int64_t axis1, std::int64_t axis2);
Array moveaxis(Operand x, std::int64_t source, std::int64_t destination);
Array moveaxis(Operand x, const Shape& source, const Shape& destination);
Array squeeze(Operand x, const ReduceAxes& axis = {});  // without the dimensions of size 1
Array expand_dims(Operand x,
                  std::int64_t axis);  // a new dimension of size 1 at `axis` of the result
Array expand_dims(Operand x, const Shape& axes);
Array broadcast_to(Operand x, const Shape& shape);  // repeated as numpy broadcasting does
Array atleast_1d(Operand x);
Array atleast_2d(Operand x);

// ------------------------------------------------------------------------- together and apart
// Dtypes are promoted; `rp::concatenate({x, y}, 1)`.
Array concatenate(const Arrays& xs, std::int64_t axis = 0, Location at = Location::current());
Array stack(const Arrays& xs, std::int64_t axis = 0, Location at = Location::current());
Array vstack(const Arrays& xs, Location at = Location::current());
Array hstack(const Arrays& xs, Location at = Location::current());
// Into equal parts, or at the given positions: split(x, 3), split(x, {1, 4}).
Arrays split(Operand x, std::int64_t sections, std::int64_t axis = 0);
Arrays split(Operand x, std::initializer_list<std::int64_t> positions, std::int64_t axis = 0);
Arrays split(Operand x, const std::vector<std::int64_t>& positions, std::int64_t axis = 0);
Arrays unstack(Operand x, std::int64_t axis = 0);  // x[0], x[1], ... along the axis

// Each element `repeats` times in a row; of the flattened array when no axis is given.
Array repeat(Operand x, std::int64_t repeats, std::optional<std::int64_t> axis = std::nullopt);
// The whole array side by side, reps[i] times along dimension i (aligned at the last dimension).
Array tile(Operand x, std::int64_t reps);
Array tile(Operand x, const Shape& reps);
Array flip(Operand x, const ReduceAxes& axis = {});  // backwards
// Moved by `shift` positions; what leaves at one end comes back at the other.
Array roll(Operand x, std::int64_t shift, std::optional<std::int64_t> axis = std::nullopt);
Array roll(Operand x, const Shape& shifts, const Shape& axes);

using PadWidths = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (before, after)
// A border of `value` around x: the same on all sides, or (before, after) for each dimension (one
// pair stands for all). pad(x, 1), pad(x, {{1, 2}, {0, 0}}, -1.0)
Array pad(Operand x, std::int64_t width, Operand value = 0);
Array pad(Operand x, const PadWidths& widths, Operand value = 0);

// --------------------------------------------------------------------------------------- indexing
// What happens to indices outside: the nearest element (clip), a fill value or no update
// (fill_or_drop), or the caller promises that there are none (evaluated as clip or no update).
using IndexMode = lax::GatherScatterMode;

// Options of take and take_along_axis.
struct TakeOptions {
  IndexMode mode = IndexMode::fill_or_drop;
  std::optional<double> fill_value = std::nullopt;  // default: NaN, or the extreme integer
  bool unique_indices = false;                      // a promise
};
// Elements by number along an axis (of the flattened array when no axis is given).
Array take(Operand x, Operand indices, std::optional<std::int64_t> axis = std::nullopt,
           const TakeOptions& options = {});
// result[i, j] = x[i, indices[i, j]] for axis 1: x and indices have the same rank, and broadcast in
// the other dimensions.
Array take_along_axis(Operand x, Operand indices, std::optional<std::int64_t> axis = -1,
                      const TakeOptions& options = {});

// start, start + step, ... before stop, as Python's start:stop:step; negative ends count from the
// end, a negative step goes backwards.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt, stop = std::nullopt, step = std::nullopt;
};
inline Slice slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                   std::optional<std::int64_t> step = std::nullopt) {
  return {start, stop, step};
}
inline Slice slice(std::int64_t stop) { return {std::nullopt, stop, std::nullopt}; }

struct NewAxis {};
inline constexpr NewAxis newaxis{};  // a dimension of size 1
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};  // as many `all` as fit

// One position of x(...): an integer, an Array of integers, a slice, newaxis, ellipsis, or the word
// `all` for a whole dimension: x(rp::all, 0).
//
// Integers known now must be inside (TypeError), negative ones count from the end. Arrays of
// integers pick several elements and broadcast against each other; what they pick outside is
// clipped. A scalar Array may be traced.
class Index {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T i, Location here = Location::current())  // NOLINT
      : value(static_cast<std::int64_t>(i)), at(here) {}
  Index(const Array& i, Location here = Location::current()) : value(i), at(here) {}  // NOLINT
  Index(const Slice& s, Location here = Location::current()) : value(s), at(here) {}  // NOLINT
  // `all` is also a reduction; as an index only its name counts.
  Index(Array (*)(Operand, ReduceAxes, bool), Location here = Location::current())  // NOLINT
      : value(Slice{}), at(here) {}
  Index(NewAxis i, Location here = Location::current()) : value(i), at(here) {}   // NOLINT
  Index(Ellipsis i, Location here = Location::current()) : value(i), at(here) {}  // NOLINT

  std::variant<std::int64_t, Array, Slice, NewAxis, Ellipsis> value;
  Location at;
};

struct UpdateOptions {
  IndexMode mode = IndexMode::fill_or_drop;
  bool indices_are_sorted = false, unique_indices = false;  // promises about index arrays
};
struct GetOptions {
  IndexMode mode = IndexMode::promise_in_bounds;
  std::optional<double> fill_value = std::nullopt;
  bool indices_are_sorted = false, unique_indices = false;
};

// The elements of x at an index. Each function returns a new array with the dtype of x; values
// broadcast. Where an element is updated several times, add, multiply, min and max apply all
// updates and set keeps one. The derivative of multiply by the values needs unique_indices.
class IndexUpdate {
 public:
  IndexUpdate(Array x, std::vector<Index> index) : x_(std::move(x)), index_(std::move(index)) {}
  Array set(Operand value, const UpdateOptions& options = {}) const;
  Array add(Operand value, const UpdateOptions& options = {}) const;
  Array multiply(Operand value, const UpdateOptions& options = {}) const;
  Array min(Operand value, const UpdateOptions& options = {}) const;
  Array max(Operand value, const UpdateOptions& options = {}) const;
  Array get(const GetOptions& options = {}) const;  // as x(...), with a choice for outside
  IndexUpdate(const IndexUpdate&) = default;
  template <class T>
  REPRISE_UNAVAILABLE("an Array never changes: write x = x.at(i).set(value)")
  void operator=(T&&);

 private:
  Array x_;
  std::vector<Index> index_;
};

}  // namespace reprise
#pragma GCC visibility pop
