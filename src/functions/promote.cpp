#include "functions/promote.h"

#include "array/access.h"
#include "ops/lax.h"
#include "program/trace.h"
#include "program/varying.h"

#include <algorithm>

namespace reprise {
namespace {

Dtype working_dtype(Dtype d, Works in) {
  if (in == Works::inexact && !is_floating(d)) return Dtype::f32;
  if (in == Works::numeric && d == Dtype::bool_) return Dtype::i32;
  return d;
}

// The dimensions of `shape` that an array of rank `ndim` covers: the last ones.
Ints last_dimensions(std::int64_t ndim, std::int64_t rank) {
  Ints dims = lax::iota_ints(ndim);
  for (std::int64_t& d : dims) d += rank - ndim;
  return dims;
}

Array with_rank(const Array& x, std::int64_t rank) {
  if (x.ndim() == rank) return x;
  Shape shape(static_cast<std::size_t>(rank - x.ndim()), 1);
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  return lax::broadcast_in_dim(x, shape, last_dimensions(x.ndim(), rank));
}

}  // namespace

Array convert_promoted(const Array& x, Dtype dtype, bool weak_type) {
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  const Array y = lax::convert(x, dtype, weak_type);
  if (!content(y).number()) return y;
  Literal l = *content(y).number();
  l.promoted = true;
  return make_number(l);
}

Array promote_dtype(const Array& x, Works in) {
  return convert_promoted(x, working_dtype(x.dtype(), in), x.weak_type());
}

Arrays promote_dtypes(Arrays x, Works in) {
  if (x.empty()) return x;
  x = with_common_varying(x);
  Promoted common{x[0].dtype(), x[0].weak_type()};
  for (const Array& a : x) {
    common = promote_types(common.dtype, common.weak_type, a.dtype(), a.weak_type());
  }
  const Dtype dtype = working_dtype(common.dtype, in);
  for (Array& a : x) a = convert_promoted(a, dtype, common.weak_type);
  return x;
}

Shape broadcast_shape(const char* op, const Arrays& x) {
  Shape out;
  for (const Array& a : x) {
    if (a.shape().size() > out.size()) out.insert(out.begin(), a.shape().size() - out.size(), 1);
    const std::size_t lead = out.size() - a.shape().size();
    for (std::size_t d = 0; d < a.shape().size(); ++d) {
      std::int64_t& size = out[lead + d];
      const std::int64_t mine = a.shape()[d];
      if (mine == size || mine == 1) continue;
      if (size != 1) {
        Types types;
        for (const Array& b : x) types.push_back(b.type());
        fail<TypeError>(op, ": shapes do not broadcast, got ", join(types, " and "));
      }
      size = mine;
    }
  }
  return out;
}

Arrays promote_shapes(const char* op, Arrays x) {
  broadcast_shape(op, x);
  std::int64_t rank = 0;
  bool ranks_differ = false;
  for (const Array& a : x) {
    if (a.ndim() == 0) continue;
    ranks_differ = ranks_differ || (rank != 0 && rank != a.ndim());
    rank = std::max(rank, a.ndim());
  }
  if (!ranks_differ) return x;
  for (Array& a : x) a = with_rank(a, rank);
  return x;
}

Arrays promote(const char* op, Arrays x, Works in) {
  return promote_shapes(op, promote_dtypes(std::move(x), in));
}

Array stretch_to(const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return lax::broadcast_in_dim(x, shape,
                               last_dimensions(x.ndim(), static_cast<std::int64_t>(shape.size())));
}

}  // namespace reprise
