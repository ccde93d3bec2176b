#include "ops/elementwise.h"

namespace reprise::elementwise {
namespace {

bool allowed(Domain domain, Dtype d) {
  if (d == Dtype::float0 || d == Dtype::key) return false;
  switch (domain) {
    case Domain::any: return true;
    case Domain::number: return d != Dtype::bool_;
    case Domain::floating: return is_floating(d);
    case Domain::integral: return !is_floating(d);
    case Domain::integer: return is_integer(d);
  }
  return false;
}
const char* describe(Domain domain) {
  switch (domain) {
    case Domain::any: return "a numeric dtype";
    case Domain::number: return "a number dtype";
    case Domain::floating: return "a floating dtype";
    case Domain::integral: return "an integer or bool dtype";
    case Domain::integer: return "an integer dtype";
  }
  return "";
}

[[noreturn]] void shapes_differ(const char* op, const Types& in) {
  fail_with_hint<TypeError>(
      "lax operations broadcast only scalars and dimensions of size 1; the numpy-style functions "
      "of ops.h broadcast ranks too",
      op, ": shapes do not match, got ", join(in, " and "));
}

Array in_front(const Array& x, const Axis& axis) {
  if (axis) return lax::moveaxis(x, *axis, 0);
  Shape shape = x.shape();
  shape.insert(shape.begin(), 1);
  lax::Ints dims = lax::iota_ints(x.ndim());
  for (std::int64_t& d : dims) ++d;
  return lax::broadcast_in_dim(x, shape, dims);
}

}  // namespace

void check_domain(const char* op, Domain domain, const Types& in) {
  for (const Type& t : in) {
    if (!allowed(domain, t.dtype)) {
      fail<TypeError>(op, ": ", describe(domain), " is needed, got ", t);
    }
  }
}

Type common_type(const char* op, const Types& in) {
  Type out = in[0];
  for (const Type& t : in) {
    if (t.dtype != out.dtype) {
      fail_with_hint<TypeError>("convert one operand with astype, or use the numpy-style function",
                                op, ": dtypes differ, got ", join(in, " and "));
    }
    out.weak_type = out.weak_type && t.weak_type;
    if (t.shape == out.shape || t.shape.empty()) continue;
    if (out.shape.empty()) {
      out.shape = t.shape;
      continue;
    }
    if (t.shape.size() != out.shape.size()) shapes_differ(op, in);
    for (std::size_t d = 0; d < t.shape.size(); ++d) {
      if (t.shape[d] == out.shape[d] || t.shape[d] == 1) continue;
      if (out.shape[d] != 1) shapes_differ(op, in);
      out.shape[d] = t.shape[d];
    }
  }
  return out;
}

Walk::Walk(const Types& in, const Shape& out) {
  for (const Type& t : in) {
    const bool scalar = t.size() == 1;
    if (!scalar && t.shape != out) flat = false;
    inner.push_back(scalar ? 0 : 1);
    strides.emplace_back();
  }
  if (flat) {
    inner_size = element_count(out);
    return;
  }
  outer.assign(out.begin(), out.end() - 1);
  inner_size = out.back();
  for (std::size_t k = 0; k < in.size(); ++k) {
    const Shape& shape = in[k].shape;
    strides[k].assign(outer.size(), 0);
    if (shape.empty()) {
      inner[k] = 0;
      continue;
    }
    inner[k] = shape.back() == 1 ? 0 : 1;
    std::int64_t stride = shape.back();
    for (std::size_t d = outer.size(); d-- > 0;) {
      strides[k][d] = shape[d] == 1 ? 0 : stride;
      stride *= shape[d];
    }
  }
}

Batched batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
              const Params& params) {
  const Array* first = nullptr;
  Axis axis;
  for (std::size_t i = 0; i < x.size() && !first; ++i) {
    if (axes[i]) {
      first = &x[i];
      axis = axes[i];
    }
  }
  bool agree = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].ndim() > 0) agree = agree && x[i].shape() == first->shape() && axes[i] == axis;
  }
  if (agree) return {self.bind(x, params), {axis}};
  // Unmapped operands get a leading dimension of size 1; mapped scalars trailing ones.
  Arrays moved;
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    moved.push_back(x[i].ndim() > 0 ? in_front(x[i], axes[i]) : x[i]);
    rank = std::max(rank, moved.back().ndim());
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!axes[i] || moved[i].ndim() == rank) continue;
    Shape shape = moved[i].shape();
    shape.resize(static_cast<std::size_t>(rank), 1);
    moved[i] = lax::broadcast_in_dim(moved[i], shape, lax::iota_ints(moved[i].ndim()));
  }
  return {self.bind(moved, params), {0}};
}

}  // namespace reprise::elementwise
