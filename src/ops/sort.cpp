// Sorting along one axis, and the largest elements of the last axis.
#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "ops/shape.h"

#include <algorithm>
#include <compare>
#include <numeric>
#include <utility>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

// The runs of an axis: `count` of them, n elements each, `inner` apart.
struct Runs {
  Runs(const Shape& shape, std::int64_t axis)
      : n(shape[static_cast<std::size_t>(axis)]),
        inner(row_major_strides(shape)[static_cast<std::size_t>(axis)]),
        count(n == 0 ? 0 : element_count(shape) / n) {}
  std::int64_t start(std::int64_t run) const { return (run / inner) * n * inner + run % inner; }
  std::int64_t n, inner, count;
};

// ------------------------------------------------------------------------------------------- sort
Types sort_type(const Types& in, const Params& params) {
  if (in.empty()) fail<TypeError>("sort: at least one operand is needed, got none");
  elementwise::check_domain("sort", Domain::any, in);
  for (const Type& t : in) {
    if (t.shape != in[0].shape) {
      fail<TypeError>("sort: operands must have equal shapes, got ", join(in, " and "));
    }
  }
  check_axes("sort", "sorted", {params.get<std::int64_t>("dimension")}, in[0]);
  const auto keys = params.get<std::int64_t>("num_keys");
  if (keys < 1 || keys > static_cast<std::int64_t>(in.size())) {
    fail<TypeError>("sort: num_keys must be between 1 and the number of operands, got ", keys,
                    " for ", in.size(), in.size() == 1 ? " operand" : " operands");
  }
  return in;
}

// Stable; NaN is after everything else, zeros of both signs are equal.
void sort_by(const Array& key, const Runs& runs, std::int64_t start, Ints& order) {
  visit_dtype(key.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = elements<T>(key) + start;
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      const auto a = static_cast<Compute<T>>(from[i * runs.inner]);
      const auto b = static_cast<Compute<T>>(from[j * runs.inner]);
      return b != b ? a == a : a < b;
    });
  });
}

void copy_run(const Array& from, NewArray& to, const Runs& runs, std::int64_t start,
              const Ints& order) {
  visit_dtype(from.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = elements<T>(from) + start;
    T* out = to.data<T>() + start;
    for (std::int64_t i : order) {
      *out = in[i * runs.inner];
      out += runs.inner;
    }
  });
}

Arrays sort_eval(const Arrays& x, const Params& params, const Types& out) {
  const Runs runs(x[0].shape(), params.get<std::int64_t>("dimension"));
  const auto keys = static_cast<std::size_t>(params.get<std::int64_t>("num_keys"));
  std::vector<NewArray> results;
  for (const Type& t : out) results.emplace_back(t);
  Ints order(static_cast<std::size_t>(runs.n));
  for (std::int64_t r = 0; r < runs.count; ++r) {
    const std::int64_t start = runs.start(r);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t k = keys; k-- > 0;) sort_by(x[k], runs, start, order);
    for (std::size_t i = 0; i < x.size(); ++i) copy_run(x[i], results[i], runs, start, order);
  }
  Arrays sorted;
  for (NewArray& result : results) sorted.push_back(std::move(result).finish());
  return sorted;
}

// t at the positions `index` of one axis, for every index of the other axes.
Array take_along(const Array& t, const Array& index, std::int64_t axis) {
  const Ints others = other_axes(t.ndim(), {axis});
  return gather(t, index,
                {.offset_dims = {},
                 .collapsed_slice_dims = {axis},
                 .start_index_map = {axis},
                 .operand_batching_dims = others,
                 .start_indices_batching_dims = others},
                Ints(t.shape().size(), 1), {.mode = GatherScatterMode::promise_in_bounds});
}

// Positions are sorted along with the operands; tangents are taken from there.
Duals sort_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto axis = params.get<std::int64_t>("dimension");
  const Shape& shape = x[0].shape();
  const bool wide = shape[static_cast<std::size_t>(axis)] > std::int64_t{0xffffffff};
  Arrays operands = x;
  operands.push_back(iota(wide ? Dtype::u64 : Dtype::u32, shape, axis));
  Duals result{sort_p.bind(operands, params), {}};
  Shape index_shape = shape;
  index_shape.push_back(1);
  const Array index = broadcast_in_dim(result.out.back(), index_shape, iota_ints(x[0].ndim()));
  result.out.pop_back();
  for (const Tangent& t : dx) result.tangents.push_back(t);
  for (Tangent& t : result.tangents) {
    if (t) t = take_along(*t, index, axis);
  }
  return result;
}

// All operands get the mapped axis where the first mapped one has it.
Batched sort_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                   const Params& params) {
  const std::size_t first = static_cast<std::size_t>(
      std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.has_value(); }) -
      axes.begin());
  const std::int64_t at = *axes[first];
  Arrays operands;
  for (std::size_t i = 0; i < x.size(); ++i) {
    operands.push_back(
        axes[i] ? moveaxis(x[i], *axes[i], at)
                : broadcast_in_dim(x[i], x[first].shape(), other_axes(x[first].ndim(), {at})));
  }
  const Ints axis = shifted_axes({params.get<std::int64_t>("dimension")}, at);
  return {self.bind(operands, params.with("dimension", axis[0])), Axes(x.size(), at)};
}

// ------------------------------------------------------------------------------------------ top_k
Types top_k_type(const Types& in, const Params& params) {
  expect_operands("top_k", in, 1);
  elementwise::check_domain("top_k", Domain::any, in);
  const auto axis = params.get<std::int64_t>("axis"), k = params.get<std::int64_t>("k");
  if (in[0].ndim() == 0) fail<TypeError>("top_k: an axis is needed, got ", in[0]);
  check_axes("top_k", "searched", {axis}, in[0]);
  const std::int64_t n = in[0].shape[static_cast<std::size_t>(axis)];
  if (k < 0 || k > n) {
    fail<TypeError>("top_k: k must be between 0 and the size of the axis, got ", k, " for axis ",
                    axis, " of ", in[0]);
  }
  if (n > std::int64_t{1} << 31) fail<TypeError>("top_k: i32 indices would overflow, got ", in[0]);
  Type values = in[0];
  values.shape[static_cast<std::size_t>(axis)] = k;
  Type indices = values;
  indices.dtype = Dtype::i32;
  return {values, indices};
}

// Places in an array, `step` apart.
class Strided {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::int32_t;
  using difference_type = std::int64_t;
  using pointer = std::int32_t*;
  using reference = std::int32_t&;
  Strided(std::int32_t* at, std::int64_t step) : at_(at), step_(step) {}
  reference operator*() const { return *at_; }
  reference operator[](std::int64_t i) const { return at_[i * step_]; }
  Strided& operator+=(std::int64_t n) {
    at_ += n * step_;
    return *this;
  }
  Strided& operator-=(std::int64_t n) { return *this += -n; }
  Strided& operator++() { return *this += 1; }
  Strided& operator--() { return *this += -1; }
  Strided operator++(int) { return std::exchange(*this, *this + 1); }
  Strided operator--(int) { return std::exchange(*this, *this - 1); }
  friend Strided operator+(Strided a, std::int64_t n) { return a += n; }
  friend Strided operator-(Strided a, std::int64_t n) { return a += -n; }
  friend std::int64_t operator-(const Strided& a, const Strided& b) {
    return (a.at_ - b.at_) / a.step_;
  }
  bool operator==(const Strided&) const = default;
  auto operator<=>(const Strided& other) const { return at_ <=> other.at_; }

 private:
  std::int32_t* at_;
  std::int64_t step_;
};

// The first k of the numbers below n, in order, with no memory but theirs: a heap whose top is the
// last of the chosen.
template <class Before>
void choose_first(Strided chosen, std::int64_t k, std::int64_t n, const Before& is_before) {
  for (std::int64_t i = 0; i < k; ++i) chosen[i] = static_cast<std::int32_t>(i);
  std::make_heap(chosen, chosen + k, is_before);
  for (std::int64_t i = k; i < n; ++i) {
    if (!is_before(static_cast<std::int32_t>(i), chosen[0])) continue;
    std::pop_heap(chosen, chosen + k, is_before);
    chosen[k - 1] = static_cast<std::int32_t>(i);
    std::push_heap(chosen, chosen + k, is_before);
  }
  std::sort_heap(chosen, chosen + k, is_before);
}

// Largest first; of equal elements the first. Zeros and NaNs are ordered by sign.
Arrays top_k_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto axis = params.get<std::int64_t>("axis"), k = params.get<std::int64_t>("k");
  const Runs runs(x[0].shape(), axis);
  NewArray values(out[0]), indices(out[1]);
  visit_dtype(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t r = 0; k > 0 && r < runs.count; ++r) {
      const T* in = elements<T>(x[0]) + runs.start(r);
      const auto is_before = [&](std::int32_t i, std::int32_t j) {
        const auto a = static_cast<Compute<T>>(in[i * runs.inner]);
        const auto b = static_cast<Compute<T>>(in[j * runs.inner]);
        const auto ab = std::strong_order(a, b);
        return ab == 0 ? i < j : ab > 0;
      };
      const std::int64_t to = (r / runs.inner) * k * runs.inner + r % runs.inner;
      const Strided best(indices.data<std::int32_t>() + to, runs.inner);
      choose_first(best, k, runs.n, is_before);
      for (std::int64_t i = 0; i < k; ++i)
        values.data<T>()[to + i * runs.inner] = in[best[i] * runs.inner];
    }
  });
  return {std::move(values).finish(), std::move(indices).finish()};
}

Tangents top_k_tangent(const Arrays&, const Tangents& dx, const Arrays& y, const Params& params) {
  Shape index_shape = y[1].shape();
  index_shape.push_back(1);
  const Array index = reshape(y[1], index_shape);
  return {take_along(*dx[0], index, params.get<std::int64_t>("axis")), std::nullopt};
}
Batched top_k_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                    const Params& params) {
  const Ints axis = shifted_axes({params.get<std::int64_t>("axis")}, *axes[0]);
  return {self.bind(x, params.with("axis", axis[0])), {axes[0], axes[0]}};
}

constexpr ParamRule sort_rules[] = {
    {"dimension", form::integer}, {"is_stable", form::flag, "True"}, {"num_keys", form::integer}};
// What is equal stays in order here, whatever is asked.
constexpr ParamRule top_k_rules[] = {
    {"axis", form::integer}, {"is_stable", form::flag, unused}, {"k", form::integer}};

}  // namespace

constinit const Primitive sort_p{.name = "sort",
                                 .kind = Kind::index,
                                 .type = sort_type,
                                 .eval = sort_eval,
                                 .jvp = sort_jvp,
                                 .batch = sort_batch,
                                 .param_rules = sort_rules};
constinit const Primitive top_k_p{.name = "top_k",
                                  .kind = Kind::index,
                                  .type = top_k_type,
                                  .eval = top_k_eval,
                                  .tangent = top_k_tangent,
                                  .batch = top_k_batch,
                                  .param_rules = top_k_rules};

Arrays lax::sort(const Arrays& xs, std::int64_t dimension, std::int64_t num_keys, bool is_stable,
                 Location at_location) {
  const AtUser at(at_location);
  if (xs.empty()) fail<TypeError>("sort: at least one operand is needed, got none");
  const std::int64_t axis = canonical_axis("sort", dimension, xs[0].ndim());
  return sort_p.bind(xs, {{"dimension", axis}, {"is_stable", is_stable}, {"num_keys", num_keys}});
}
std::pair<Array, Array> lax::top_k(Operand x, std::int64_t k) {
  const AtUser at(x.at);
  const Arrays y = top_k_p.bind({x.array}, {{"axis", x.array.ndim() - 1}, {"k", k}});
  return {y[0], y[1]};
}

}  // namespace reprise
