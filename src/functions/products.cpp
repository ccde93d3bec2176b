// Products of vectors, matrices and arrays of them, in numpy style.
#include "base/dtype.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

#include <algorithm>
#include <numeric>

namespace reprise {
namespace {

const Location& later(const Operand& a, const Operand& b) {
  return b.at.line > a.at.line ? b.at : a.at;
}

// The dtype of a product: the preferred one, else the promoted one.
Promoted product_type(const Array& a, const Array& b, std::optional<Dtype> preferred) {
  if (preferred) return {*preferred, false};
  return promote_types(a.dtype(), a.weak_type(), b.dtype(), b.weak_type());
}
Array general_product(const Array& a, const Array& b, const lax::DotDimensionNumbers& dims,
                      std::optional<Dtype> preferred = std::nullopt) {
  const Promoted type = product_type(a, b, preferred);
  const Array out = lax::dot_general(a, b, dims, type.dtype);
  return lax::convert(out, type.dtype, type.weak_type);
}

Array as_row(const Array& x) { return lax::reshape(x, {x.size()}); }

// How matmul lines up the leading axes of its operands. An axis of size 1 is squeezed away instead
// of repeated; `batch`, `a_free` and `b_free` say where the axes of the product go in the result.
struct MatmulPlan {
  Ints a_squeeze, b_squeeze, both_squeeze;
  Ints a_batch, b_batch;
  Ints batch, a_free, b_free;

  std::int64_t a_axis() const { return size(batch) + size(a_free); }
  std::int64_t b_axis() const { return size(batch) + size(b_free); }
  void squeeze_a() { a_squeeze.push_back(a_axis() + size(a_squeeze)); }
  void squeeze_b() { b_squeeze.push_back(b_axis() + size(b_squeeze)); }
  static std::int64_t size(const Ints& v) { return static_cast<std::int64_t>(v.size()); }
};

MatmulPlan plan_matmul(const Array& a, const Array& b) {
  const std::int64_t a_lead = std::max<std::int64_t>(0, a.ndim() - 2);
  const std::int64_t b_lead = std::max<std::int64_t>(0, b.ndim() - 2);
  const std::int64_t lead = std::max(a_lead, b_lead);
  MatmulPlan p;
  for (std::int64_t i = 0; i < lead; ++i) {
    const std::int64_t in_a = i - (lead - a_lead), in_b = i - (lead - b_lead);
    const std::int64_t m = in_a < 0 ? -1 : a.shape(in_a), n = in_b < 0 ? -1 : b.shape(in_b);
    if (m < 0) {
      p.b_free.push_back(i);
    } else if (n < 0) {
      p.a_free.push_back(i);
    } else if (m == 1 && n == 1) {
      p.squeeze_a();
      p.squeeze_b();
      p.both_squeeze.push_back(i);
    } else if (m == 1) {
      p.b_free.push_back(i);
      p.squeeze_a();
    } else if (n == 1) {
      p.a_free.push_back(i);
      p.squeeze_b();
    } else if (m == n) {
      p.a_batch.push_back(p.a_axis());
      p.b_batch.push_back(p.b_axis());
      p.batch.push_back(i);
    } else {
      fail<TypeError>("matmul: batch axes do not broadcast, got ", a.type(), " and ", b.type());
    }
  }
  if (a.ndim() > 1) p.a_free.push_back(lead);
  if (b.ndim() > 1) p.b_free.push_back(lead + (a.ndim() > 1 ? 1 : 0));
  return p;
}

// The permutation that brings the axes with these destinations into order.
Ints order_of(const MatmulPlan& p) {
  Ints destination = p.batch;
  destination.insert(destination.end(), p.a_free.begin(), p.a_free.end());
  destination.insert(destination.end(), p.b_free.begin(), p.b_free.end());
  Ints order(destination.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return destination[static_cast<std::size_t>(i)] < destination[static_cast<std::size_t>(j)];
  });
  return order;
}

}  // namespace

Array dot(Operand a, Operand b, std::optional<Dtype> preferred_element_type) {
  const AtUser at(later(a, b));
  const Array &x = a.array, &y = b.array;
  lax::DotDimensionNumbers dims;
  if (x.ndim() > 0 && y.ndim() > 0) {
    dims.lhs_contracting = {x.ndim() - 1};
    dims.rhs_contracting = {std::max<std::int64_t>(0, y.ndim() - 2)};
  }
  return general_product(x, y, dims, preferred_element_type);
}

Array matmul(Operand a, Operand b, std::optional<Dtype> preferred_element_type) {
  const AtUser at(later(a, b));
  for (const Operand* x : {&a, &b}) {
    if (x->array.ndim() == 0) {
      fail_with_hint<TypeError>("use multiply, or operator*, to scale",
                                "matmul: operands need at least one axis, got ", x->array.type());
    }
  }
  const MatmulPlan p = plan_matmul(a.array, b.array);
  const Promoted type = product_type(a.array, b.array, preferred_element_type);
  const Array x = lax::squeeze(a.array, p.a_squeeze);
  const Array y = lax::squeeze(b.array, p.b_squeeze);
  const lax::DotDimensionNumbers dims{.lhs_contracting = {x.ndim() - 1},
                                      .rhs_contracting = {std::max<std::int64_t>(0, y.ndim() - 2)},
                                      .lhs_batch = p.a_batch,
                                      .rhs_batch = p.b_batch};
  const Array product = lax::dot_general(x, y, dims, type.dtype);
  Array out = lax::transpose(product, order_of(p));
  if (!p.both_squeeze.empty()) out = lax::expand_dims(out, p.both_squeeze);
  return lax::convert(out, type.dtype, type.weak_type);
}

Array tensordot(Operand a, Operand b, std::int64_t axes) {
  const AtUser at(later(a, b));
  const std::int64_t m = a.array.ndim();
  if (axes < 0 || axes > m || axes > b.array.ndim()) {
    fail<TypeError>("tensordot: axes must be between 0 and the ranks of the operands, got ", axes,
                    " for ", a.array.type(), " and ", b.array.type());
  }
  Ints last = lax::iota_ints(axes);
  for (std::int64_t& axis : last) axis += m - axes;
  return general_product(a.array, b.array,
                         {.lhs_contracting = last, .rhs_contracting = lax::iota_ints(axes)});
}
Array tensordot(Operand a, Operand b, const std::vector<std::int64_t>& a_axes,
                const std::vector<std::int64_t>& b_axes) {
  const AtUser at(later(a, b));
  lax::DotDimensionNumbers dims;
  for (std::int64_t axis : a_axes) {
    dims.lhs_contracting.push_back(canonical_axis("tensordot", axis, a.array.ndim()));
  }
  for (std::int64_t axis : b_axes) {
    dims.rhs_contracting.push_back(canonical_axis("tensordot", axis, b.array.ndim()));
  }
  return general_product(a.array, b.array, dims);
}

Array inner(Operand a, Operand b) {
  const AtUser at(later(a, b));
  if (a.array.ndim() == 0 || b.array.ndim() == 0) return multiply(a.array, b.array);
  return general_product(
      a.array, b.array,
      {.lhs_contracting = {a.array.ndim() - 1}, .rhs_contracting = {b.array.ndim() - 1}});
}
Array vdot(Operand a, Operand b) {
  const AtUser at(later(a, b));
  const Array x = as_row(a.array);
  const Array y = as_row(b.array);
  return general_product(x, y, {.lhs_contracting = {0}, .rhs_contracting = {0}});
}
Array outer(Operand a, Operand b) {
  const AtUser at(later(a, b));
  const Arrays operands = promote_dtypes({a.array, b.array});
  const Array x = as_row(operands[0]);
  const Array y = as_row(operands[1]);
  const Array column = lax::broadcast_in_dim(x, {x.size(), 1}, {0});
  const Array row = lax::broadcast_in_dim(y, {1, y.size()}, {1});
  return multiply(column, row);
}

}  // namespace reprise
