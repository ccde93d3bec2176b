// Cumulative operations and sorting in numpy style.
#include "base/dtype.h"
#include "control/call.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "reprise/ops_reduce.h"

namespace reprise {
namespace {

// x and a valid axis of it: without one, x as one row.
struct Along {
  Array x;
  std::int64_t axis;
};
Along along(const Array& x, std::optional<std::int64_t> axis) {
  if (axis) return {x, *axis};
  return {lax::reshape(x, {x.size()}), 0};
}
std::optional<std::int64_t> checked(const char* op, std::optional<std::int64_t> axis,
                                    const Array& x) {
  if (!axis) return axis;
  return canonical_axis(op, *axis, x.ndim());
}

using Cumulative = Array (*)(Operand, std::int64_t, bool);
Array cumulative(const char* op, Cumulative accumulate, const Operand& x,
                 std::optional<std::int64_t> axis) {
  const AtUser at(x.at);
  const auto valid = checked(op, axis, x.array);
  const auto body = [=](const Arrays& args) -> Arrays {
    const Along a = along(args[0], valid);
    const bool counts = a.x.dtype() == Dtype::bool_;
    const Dtype dtype = counts ? index_dtype(a.x.shape(a.axis)) : a.x.dtype();
    const Array strong = lax::convert(a.x, dtype);
    return {accumulate(strong, a.axis, false)};
  };
  return jit_call1(op, body, {x.array});
}

}  // namespace

Array cumsum(Operand x, std::optional<std::int64_t> axis) {
  return cumulative("cumsum", lax::cumsum, x, axis);
}
Array cumprod(Operand x, std::optional<std::int64_t> axis) {
  return cumulative("cumprod", lax::cumprod, x, axis);
}
Array cummax(Operand x, std::int64_t axis) {
  const AtUser at(x.at);
  return lax::cummax(x.array, canonical_axis("cummax", axis, x.array.ndim()));
}
Array cummin(Operand x, std::int64_t axis) {
  const AtUser at(x.at);
  return lax::cummin(x.array, canonical_axis("cummin", axis, x.array.ndim()));
}

Array sort(Operand x, std::optional<std::int64_t> axis, bool descending) {
  const AtUser at(x.at);
  const auto valid = checked("sort", axis, x.array);
  const auto body = [=](const Arrays& args) -> Arrays {
    const Along a = along(args[0], valid);
    const Array sorted = lax::sort({a.x}, a.axis)[0];
    return {descending ? lax::rev(sorted, {a.axis}) : sorted};
  };
  return jit_call1("sort", body, {x.array});
}

// Descending order is the reverse of the order of the reversed array: stable in both directions.
Array argsort(Operand x, std::optional<std::int64_t> axis, bool descending) {
  const AtUser at(x.at);
  const auto valid = checked("argsort", axis, x.array);
  const auto body = [=](const Arrays& args) -> Arrays {
    const Along a = along(args[0], valid);
    Array keys = a.x;
    Array positions = lax::iota(index_dtype(keys.shape(a.axis)), keys.shape(), a.axis);
    if (descending) {
      keys = lax::rev(keys, {a.axis});
      positions = lax::rev(positions, {a.axis});
    }
    const Array sorted = lax::sort({keys, positions}, a.axis)[1];
    return {descending ? lax::rev(sorted, {a.axis}) : sorted};
  };
  return jit_call1("argsort", body, {x.array});
}

std::pair<Array, Array> top_k(Operand x, std::int64_t k) { return lax::top_k(x, k); }

}  // namespace reprise
