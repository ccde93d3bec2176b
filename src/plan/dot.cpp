#include "plan/dot.h"

#include "ops/records.h"

#include <algorithm>

namespace reprise::plan {
namespace {

struct Merged {
  std::int64_t size = 1, stride = 1;
};

// Dimensions `dims` of v as one loop, in that order.
std::optional<Merged> merged(const View& v, const Ints& dims) {
  Merged m;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const auto d = static_cast<std::size_t>(dims[i]);
    if (v.shape[d] == 1) continue;
    if (m.size == 1)
      m.stride = v.strides[d];
    else if (v.strides[d] != m.stride * m.size)
      return std::nullopt;
    m.size *= v.shape[d];
  }
  return m;
}

struct Roles {
  Ints batch, free, contracted;
};
Roles roles_of(const Equation& e, std::size_t k, std::size_t rank) {
  const auto& dims = e.params.get<DotDims>("dimension_numbers");
  Roles r{k == 0 ? dims.lhs_batch : dims.rhs_batch,
          {},
          k == 0 ? dims.lhs_contracting : dims.rhs_contracting};
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(rank); ++d) {
    const auto is = [&](const Ints& list) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    if (!is(r.batch) && !is(r.contracted)) r.free.push_back(d);
  }
  return r;
}

}  // namespace

Ints dot_order(const Equation& e, std::size_t k, std::size_t rank) {
  const Roles r = roles_of(e, k, rank);
  Ints order = r.batch;
  order.insert(order.end(), r.free.begin(), r.free.end());
  order.insert(order.end(), r.contracted.begin(), r.contracted.end());
  return order;
}

std::optional<DotOperand> dot_operand(const Equation& e, std::size_t k, const View& v) {
  const auto [batch, free, contracted] = roles_of(e, k, v.shape.size());
  const auto f = merged(v, free), c = merged(v, contracted);
  if (!f || !c) return std::nullopt;
  DotOperand out{{}, {}, f->size, c->size, f->stride, c->stride};
  for (std::int64_t d : batch) {
    out.batch.push_back(v.shape[static_cast<std::size_t>(d)]);
    out.batch_strides.push_back(v.strides[static_cast<std::size_t>(d)]);
  }
  return out;
}

std::optional<DotResult> dot_result(const Program& p, const Equation& e, const View& v) {
  const auto& dims = e.params.get<DotDims>("dimension_numbers");
  const auto batch = static_cast<std::int64_t>(dims.lhs_batch.size());
  const auto rows =
      p.type(e.in[0]).ndim() - batch - static_cast<std::int64_t>(dims.lhs_contracting.size());
  Ints row_dims, column_dims;
  for (std::int64_t d = batch; d < static_cast<std::int64_t>(v.shape.size()); ++d) {
    (d < batch + rows ? row_dims : column_dims).push_back(d);
  }
  const auto r = merged(v, row_dims), c = merged(v, column_dims);
  const bool one_is_dense =
      r && c && (c->stride == 1 || c->size == 1 || r->stride == 1 || r->size == 1);
  if (!one_is_dense) return std::nullopt;
  return DotResult{Ints(v.strides.begin(), v.strides.begin() + batch), r->stride, c->stride};
}

bool is_compiled_product(const Type& lhs, const Type& rhs, const Type& out) {
  const Dtype d = lhs.dtype;
  const bool widens = (d == Dtype::bf16 || d == Dtype::f16) && out.dtype == Dtype::f32;
  return d == rhs.dtype && d != Dtype::bool_ && (d == out.dtype || widens) && lhs.size() > 0 &&
         rhs.size() > 0;
}
bool is_compiled_dot(const Program& p, const Equation& e) {
  return e.prim == &dot_general_p &&
         is_compiled_product(p.type(e.in[0]), p.type(e.in[1]), p.type(e.out[0]));
}

}  // namespace reprise::plan
