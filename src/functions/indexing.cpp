// x(i, slice(1, 3), indices) and x.at(...): positions first become one list with an entry for each
// axis, then static slices, one dynamic slice, or a gather (for updates a scatter).
#include "base/warning.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "reprise/ops_shape.h"

#include <algorithm>
#include <array>
#include <limits>

namespace reprise {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---------------------------------------------------------------------------------------- parsing
struct Range {  // start, start + step, ...: `size` elements
  std::int64_t start = 0, stop = 0, step = 1, size = 0;
};
struct Integer {
  std::int64_t value;  // inside
};
struct Entry {
  std::variant<Integer, Array, Range, NewAxis> what;
  std::int64_t axis = -1;  // of x; none for newaxis
  template <class T>
  const T* get() const {
    return std::get_if<T>(&what);
  }
  // An index that is not a slice: it can take part in advanced indexing.
  bool is_point() const { return get<Integer>() != nullptr || get<Array>() != nullptr; }
};
struct Positions {
  std::vector<Entry> entries;
  bool points_are_adjacent = true;  // as written
  bool has_index_arrays = false;    // of rank > 0
  bool has_scalar_arrays = false;
};

Range python_range(const Slice& s, std::int64_t size) {
  Range r;
  r.step = std::max(s.step.value_or(1), -std::numeric_limits<std::int64_t>::max());
  if (r.step == 0) fail<TypeError>("index: the step of a slice must not be 0, got 0");
  const bool forward = r.step > 0;
  const std::int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto end = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, low, high);
  };
  r.start = end(s.start, forward ? low : high);
  r.stop = end(s.stop, forward ? high : low);
  if (forward && r.start < r.stop) r.size = (r.stop - r.start - 1) / r.step + 1;
  if (!forward && r.start > r.stop) r.size = (r.start - r.stop - 1) / -r.step + 1;
  return r;
}

Integer checked_integer(std::int64_t i, std::int64_t axis, const Type& x) {
  const std::int64_t size = x.shape[at(axis)];
  if (i < -size || i >= size) {
    fail<TypeError>("index: out of range, got ", i, " for axis ", axis, " of ", x);
  }
  return {i < 0 ? i + size : i};
}

Entry parse(const Index& index, std::int64_t axis, const Type& x) {
  const AtUser scope(index.at);
  if (const auto* i = std::get_if<std::int64_t>(&index.value)) {
    return {checked_integer(*i, axis, x), axis};
  }
  if (const auto* s = std::get_if<Slice>(&index.value)) {
    return {python_range(*s, x.shape[at(axis)]), axis};
  }
  const Array& i = std::get<Array>(index.value);
  if (!is_integer(i.dtype())) {
    fail_with_hint<TypeError>("select with where, or index with the positions",
                              "index: an index array must have an integer dtype, got ", i.type());
  }
  if (content(i).number() && i.weak_type()) {
    return {checked_integer(content(i).number()->integer, axis, x), axis};
  }
  if (i.ndim() == 0 && x.shape[at(axis)] == 0) {
    fail<TypeError>("index: axis ", axis, " is empty, got ", x);
  }
  return {i, axis};
}

Positions parse(const std::vector<Index>& index, const Type& x) {
  const AtUser scope(index[0].at);
  std::int64_t named = 0, ellipses = 0;
  for (const Index& i : index) {
    const bool dots = std::holds_alternative<Ellipsis>(i.value);
    ellipses += dots ? 1 : 0;
    named += dots || std::holds_alternative<NewAxis>(i.value) ? 0 : 1;
  }
  if (ellipses > 1) fail<TypeError>("index: at most one ellipsis can be used, got ", ellipses);
  if (named > x.ndim()) fail<TypeError>("index: too many indices, got ", named, " for ", x);

  Positions out;
  std::optional<std::size_t> last_point;
  std::int64_t axis = 0;
  const auto whole_axes = [&](std::int64_t count) {
    for (; count > 0; --count, ++axis) {
      out.entries.push_back({python_range(Slice{}, x.shape[at(axis)]), axis});
    }
  };
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (std::holds_alternative<NewAxis>(index[i].value)) {
      out.entries.push_back({NewAxis{}, -1});
      continue;
    }
    if (std::holds_alternative<Ellipsis>(index[i].value)) {
      whole_axes(x.ndim() - named);
      continue;
    }
    out.entries.push_back(parse(index[i], axis++, x));
    const Entry& entry = out.entries.back();
    if (!entry.is_point()) continue;
    if (last_point && i != *last_point + 1) out.points_are_adjacent = false;
    last_point = i;
    if (const Array* array = entry.get<Array>()) {
      (array->ndim() > 0 ? out.has_index_arrays : out.has_scalar_arrays) = true;
    }
  }
  whole_axes(x.ndim() - axis);
  return out;
}

// ----------------------------------------------------------------------------------------- slices
// What follows a slice: axes that go backwards, axes that go, axes that come.
struct Aftermath {
  Ints reversed, removed, added;
  void note(const Entry& e, std::int64_t axes_so_far) {
    if (e.get<NewAxis>()) {
      added.push_back(axes_so_far - static_cast<std::int64_t>(removed.size()) +
                      static_cast<std::int64_t>(added.size()));
    } else if (const Range* r = e.get<Range>()) {
      if (r->step < 0) reversed.push_back(e.axis);
    } else {
      removed.push_back(e.axis);
    }
  }
  Array apply(Array x) const {
    if (!reversed.empty()) x = lax::rev(x, reversed);
    x = lax::squeeze(x, removed);
    return added.empty() ? x : lax::expand_dims(x, added);
  }
};

// The same elements in increasing order: first, one past the last.
std::pair<std::int64_t, std::int64_t> increasing(const Range& r, std::int64_t size) {
  if (r.step > 0) return {r.start, std::max(r.start, r.stop)};
  const std::int64_t distance = std::abs(r.start - r.stop - 1);
  const std::int64_t first = std::min(size, r.stop + 1 + distance % -r.step);
  return {first, std::max(first, r.start + 1)};
}

Array static_slice(const Array& x, const Positions& positions) {
  Ints start, limit, strides;
  Aftermath after;
  for (const Entry& e : positions.entries) {
    after.note(e, static_cast<std::int64_t>(start.size()));
    if (const Integer* i = e.get<Integer>()) {
      start.push_back(i->value);
      limit.push_back(i->value + 1);
      strides.push_back(1);
    } else if (const Range* r = e.get<Range>()) {
      const auto [first, end] = increasing(*r, x.shape(e.axis));
      start.push_back(first);
      limit.push_back(end);
      strides.push_back(std::abs(r->step));
    }
  }
  const bool steps = std::any_of(strides.begin(), strides.end(), [](auto s) { return s != 1; });
  const bool everything = !steps && start == Ints(start.size(), 0) && limit == x.shape();
  if (everything) return after.apply(x);
  return after.apply(
      lax::slice(x, start, limit, steps ? std::optional<Ints>(strides) : std::nullopt));
}

Dtype dtype_of_indices(const Shape& shape) {
  return index_dtype(shape.empty() ? 0 : *std::max_element(shape.begin(), shape.end()));
}
Array index_literal(std::int64_t value, Dtype dtype) {
  Literal l = make_literal(dtype, 0);
  l.integer = value;
  l.promoted = true;  // JAX keeps indices as residuals
  return make_number(l);
}

bool fits_dynamic_slice(const Positions& positions) {
  return !positions.has_index_arrays &&
         std::all_of(positions.entries.begin(), positions.entries.end(), [](const Entry& e) {
           const Range* r = e.get<Range>();
           return r == nullptr || r->step == 1 || r->step == -1;
         });
}
Array dynamic_slice(const Array& x, const Positions& positions) {
  const Dtype dtype = dtype_of_indices(x.shape());
  Arrays start;
  Ints sizes;
  Aftermath after;
  for (const Entry& e : positions.entries) {
    after.note(e, static_cast<std::int64_t>(start.size()));
    if (const Array* index = e.get<Array>()) {
      // One index keeps its type; several need the same.
      start.push_back(x.ndim() > 1 ? lax::convert(*index, dtype) : *index);
      sizes.push_back(1);
    } else if (const Integer* i = e.get<Integer>()) {
      start.push_back(index_literal(i->value, dtype));
      sizes.push_back(1);
    } else if (const Range* r = e.get<Range>()) {
      const auto [first, end] = increasing(*r, x.shape(e.axis));
      start.push_back(index_literal(first, dtype));
      sizes.push_back(end - first);
    }
  }
  Arrays operands{x};
  for (std::size_t d = 0; d < start.size(); ++d) {
    operands.push_back(wrap_negative(start[d], x.shape()[d]));
  }
  return after.apply(dynamic_slice_p.bind1(operands, {{"slice_sizes", sizes}}));
}

// ------------------------------------------------------------------------------------- index
// arrays Indexing as one gather, or one scatter.
struct GatherPlan {
  Shape shape;  // of the result
  Ints slice_sizes;
  Array indices;
  lax::GatherDimensionNumbers numbers;
  Ints reversed, added;  // dimensions of the result to reverse, then to add
  bool has_index_arrays = false;
};

class GatherPlanner {
 public:
  GatherPlanner(const Array& x, Positions positions)
      : x_(x), positions_(std::move(positions)), dtype_(dtype_of_indices(x.shape())) {}

  GatherPlan plan() {
    wrap_negative_arrays();
    bool points_done = !positions_.has_index_arrays;
    for (const Entry& e : positions_.entries) {
      if (!points_done && (e.is_point() || !positions_.points_are_adjacent)) {
        add_points();
        points_done = true;
      }
      if (e.get<NewAxis>()) {
        plan_.added.push_back(static_cast<std::int64_t>(plan_.shape.size()));
        plan_.shape.push_back(1);
      } else if (const Range* r = e.get<Range>()) {
        add_range(e, *r);
      } else {
        if (!positions_.has_index_arrays) add_point(e);
        plan_.slice_sizes.push_back(1);
      }
    }
    plan_.indices = joined_indices();
    std::sort(plan_.numbers.collapsed_slice_dims.begin(), plan_.numbers.collapsed_slice_dims.end());
    plan_.has_index_arrays = positions_.has_index_arrays;
    return std::move(plan_);
  }

 private:
  struct Part {  // indices into one axis of x, whose dimensions begin at `dim` of all indices
    Array array;
    std::int64_t dim;
  };
  // Axis of the result without added ones.
  std::int64_t result_axis() const {
    return static_cast<std::int64_t>(plan_.shape.size() - plan_.added.size());
  }
  void wrap_negative_arrays() {
    for (Entry& e : positions_.entries) {
      const Array* array = e.get<Array>();
      if (array == nullptr) continue;
      if (is_unsigned(array->dtype())) continue;
      const Array given = *array;
      const auto size = static_cast<double>(x_.shape(e.axis));
      const Array is_negative = lax::lt(given, lax::const_like(given, 0));
      const Array from_end =
          lax::add(given, make_number(make_literal(given.dtype(), size, given.weak_type())));
      e.what = lax::select_n(is_negative, {given, from_end});
    }
  }
  void add_index(const Array& array, std::int64_t dim, std::int64_t axis) {
    parts_.push_back({array, dim});
    plan_.numbers.start_index_map.push_back(axis);
  }
  // All points together, broadcast to one shape.
  void add_points() {
    Arrays points;
    Ints axes;
    for (const Entry& e : positions_.entries) {
      if (!e.is_point()) continue;
      const Integer* i = e.get<Integer>();
      const bool small = dtype_ == Dtype::i32;
      points.push_back(!i      ? *e.get<Array>()
                       : small ? Array(i->value)
                               : index_literal(i->value, dtype_));
      axes.push_back(e.axis);
    }
    const Shape shape = broadcast_shape("index", points);
    for (Array& p : points) p = stretch_to(p, shape);
    const auto dim = static_cast<std::int64_t>(batch_.size());
    for (std::size_t k = 0; k < points.size(); ++k) {
      add_index(lax::convert(points[k], dtype_), dim, axes[k]);
      plan_.numbers.collapsed_slice_dims.push_back(axes[k]);
    }
    batch_.insert(batch_.end(), shape.begin(), shape.end());
    plan_.shape.insert(plan_.shape.end(), shape.begin(), shape.end());
  }
  void add_point(const Entry& e) {
    const Integer* i = e.get<Integer>();
    const Array index = i ? index_literal(i->value, dtype_) : lax::convert(*e.get<Array>(), dtype_);
    add_index(index, static_cast<std::int64_t>(batch_.size()), e.axis);
    plan_.numbers.collapsed_slice_dims.push_back(e.axis);
  }
  void add_range(const Entry& e, const Range& r) {
    const auto dim = static_cast<std::int64_t>(batch_.size());
    if (r.step == 1) {
      // A whole axis needs no index.
      if (r.size != x_.shape(e.axis)) add_index(index_literal(r.start, dtype_), dim, e.axis);
      plan_.slice_sizes.push_back(r.size);
      plan_.numbers.offset_dims.push_back(result_axis());
    } else {
      const Array count = lax::iota(dtype_, {r.size}, 0);
      const Array scaled = lax::mul(index_literal(r.step, dtype_), count);
      Array indices = lax::add(index_literal(r.start, dtype_), scaled);
      if (r.step < 0) {
        plan_.reversed.push_back(result_axis());
        indices = lax::rev(indices, {0});
      }
      add_index(indices, dim, e.axis);
      plan_.numbers.collapsed_slice_dims.push_back(e.axis);
      plan_.slice_sizes.push_back(1);
      batch_.push_back(r.size);
    }
    plan_.shape.push_back(r.size);
  }
  // Index vectors: one component from each part, in a new last dimension.
  Array joined_indices() {
    if (parts_.empty()) return NewArray(Type{dtype_, {0}}).finish();
    if (parts_.size() == 1) return lax::expand_dims(parts_[0].array, {parts_[0].array.ndim()});
    const auto last = static_cast<std::int64_t>(batch_.size());
    Shape shape = batch_;
    shape.push_back(1);
    Arrays columns;
    for (const Part& p : parts_) {
      Ints dims = lax::iota_ints(p.array.ndim());
      for (std::int64_t& d : dims) d += p.dim;
      columns.push_back(lax::broadcast_in_dim(p.array, shape, dims));
    }
    return lax::concatenate(columns, last);
  }

  const Array x_;
  Positions positions_;
  const Dtype dtype_;
  GatherPlan plan_;
  std::vector<Part> parts_;
  Shape batch_;  // of all indices
};

bool has_zero(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

Array gathered(const Array& x, Positions positions, const GetOptions& options) {
  const GatherPlan plan = GatherPlanner(x, std::move(positions)).plan();
  if (has_zero(plan.shape)) return lax::full(plan.shape, 0, x.dtype());
  Array y = x;
  if (plan.indices.size() > 0) {
    y = lax::gather(x, plan.indices, plan.numbers, plan.slice_sizes,
                    {.mode = options.mode,
                     .indices_are_sorted = options.indices_are_sorted || !plan.has_index_arrays,
                     .unique_indices = options.unique_indices || !plan.has_index_arrays,
                     .fill_value = options.fill_value});
  }
  if (!plan.reversed.empty()) y = lax::rev(y, plan.reversed);
  return plan.added.empty() ? y : lax::expand_dims(y, plan.added);
}

Array get(const Array& x, const std::vector<Index>& index, const GetOptions& options = {}) {
  const AtUser scope(index[0].at);
  Positions positions = parse(index, x.type());
  if (options.mode != IndexMode::fill_or_drop) {
    if (!positions.has_index_arrays && !positions.has_scalar_arrays) {
      return static_slice(x, positions);
    }
    if (fits_dynamic_slice(positions)) return dynamic_slice(x, positions);
  }
  return gathered(x, std::move(positions), options);
}

using Scatter = Array (*)(Operand, Operand, Operand, const lax::ScatterDimensionNumbers&,
                          const lax::ScatterOptions&);

Array updated(Scatter scatter, const Array& x, const std::vector<Index>& index,
              const Operand& value, const UpdateOptions& options) {
  const AtUser scope(index[0].at);
  const GatherPlan plan = GatherPlanner(x, parse(index, x.type())).plan();
  if (has_zero(plan.shape)) return x;
  const Arrays both = promote_dtypes({x, value.array});
  if (both[0].dtype() != x.dtype()) {
    warn(str("at: values are cut to the dtype of the array, got ", value.array.dtype(), " for ",
             x.dtype(), "; convert them with astype, or the array if it is to hold them"));
  }
  Array updates = broadcast_to(both[1], plan.shape);
  updates = lax::squeeze(updates, plan.added);
  if (!plan.reversed.empty()) updates = lax::rev(updates, plan.reversed);
  const lax::GatherDimensionNumbers& n = plan.numbers;
  const Array y = scatter(both[0], plan.indices, updates,
                          {n.offset_dims, n.collapsed_slice_dims, n.start_index_map, {}, {}},
                          {options.mode, options.indices_are_sorted || !plan.has_index_arrays,
                           options.unique_indices || !plan.has_index_arrays});
  return lax::convert(y, x.dtype(), x.weak_type());
}

}  // namespace

// ------------------------------------------------------------------------------------ Array
// members
Array Array::operator[](I i) const { return get(*this, {i}); }
Array Array::operator()(I a) const { return get(*this, {a}); }
Array Array::operator()(I a, I b) const { return get(*this, {a, b}); }
Array Array::operator()(I a, I b, I c) const { return get(*this, {a, b, c}); }
Array Array::operator()(I a, I b, I c, I d) const { return get(*this, {a, b, c, d}); }
Array Array::operator()(I a, I b, I c, I d, I e) const { return get(*this, {a, b, c, d, e}); }
Array Array::operator()(I a, I b, I c, I d, I e, I f) const {
  return get(*this, {a, b, c, d, e, f});
}
IndexUpdate Array::at(I a) const { return {*this, {a}}; }
IndexUpdate Array::at(I a, I b) const { return {*this, {a, b}}; }
IndexUpdate Array::at(I a, I b, I c) const { return {*this, {a, b, c}}; }
IndexUpdate Array::at(I a, I b, I c, I d) const { return {*this, {a, b, c, d}}; }
IndexUpdate Array::at(I a, I b, I c, I d, I e) const { return {*this, {a, b, c, d, e}}; }
IndexUpdate Array::at(I a, I b, I c, I d, I e, I f) const { return {*this, {a, b, c, d, e, f}}; }

Array IndexUpdate::set(Operand value, const UpdateOptions& options) const {
  return updated(lax::scatter, x_, index_, value, options);
}
Array IndexUpdate::add(Operand value, const UpdateOptions& options) const {
  return updated(lax::scatter_add, x_, index_, value, options);
}
Array IndexUpdate::multiply(Operand value, const UpdateOptions& options) const {
  return updated(lax::scatter_mul, x_, index_, value, options);
}
Array IndexUpdate::min(Operand value, const UpdateOptions& options) const {
  return updated(lax::scatter_min, x_, index_, value, options);
}
Array IndexUpdate::max(Operand value, const UpdateOptions& options) const {
  return updated(lax::scatter_max, x_, index_, value, options);
}
Array IndexUpdate::get(const GetOptions& options) const {
  return reprise::get(x_, index_, options);
}

}  // namespace reprise
