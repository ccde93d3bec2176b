#include "dist/elements.h"

#include "base/dtype.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace reprise::dist {
namespace {

template <class T, Reduction how>
T reduced(T a, T b) {
  if constexpr (is_half<T>) {
    return T(reduced<float, how>(static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (how == Reduction::sum) {
    return static_cast<T>(a + b);
  } else {
    if constexpr (is_floating_element<T>) {  // a NaN stays one
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return how == Reduction::max ? std::max(a, b) : std::min(a, b);
  }
}
template <class T, Reduction how>
void reduce(void* in, void* inout, int* count, MPI_Datatype*) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = reduced<T, how>(a[i], b[i]);
}
template <class T>
MPI_User_function* function_for(Reduction how) {
  if (how == Reduction::sum) return reduce<T, Reduction::sum>;
  return how == Reduction::max ? reduce<T, Reduction::max> : reduce<T, Reduction::min>;
}

MPI_Datatype plain_type(Dtype d) {
  switch (d) {
    case Dtype::u8: return MPI_UINT8_T;
    case Dtype::u16: return MPI_UINT16_T;
    case Dtype::u32: return MPI_UINT32_T;
    case Dtype::u64: return MPI_UINT64_T;
    case Dtype::i8: return MPI_INT8_T;
    case Dtype::i16: return MPI_INT16_T;
    case Dtype::i32: return MPI_INT32_T;
    case Dtype::i64: return MPI_INT64_T;
    case Dtype::f16:
    case Dtype::bf16: return MPI_UINT16_T;  // the bits
    case Dtype::f32: return MPI_FLOAT;
    case Dtype::f64: return MPI_DOUBLE;
    case Dtype::bool_:
    case Dtype::float0:
    case Dtype::key: break;
  }
  fail<TypeError>("psum: numbers are needed, got ", d);
}

std::map<std::pair<Dtype, Reduction>, MPI_Op>& own_ops() {
  static auto& ops = *new std::map<std::pair<Dtype, Reduction>, MPI_Op>;
  return ops;
}

}  // namespace

Elements elements_of(Dtype d, Reduction how) {
  const MPI_Datatype type = plain_type(d);
  const bool is_half_type = d == Dtype::f16 || d == Dtype::bf16;
  if (!is_floating(d) || (how == Reduction::sum && !is_half_type))
    return {type, how == Reduction::sum ? MPI_SUM : how == Reduction::max ? MPI_MAX : MPI_MIN};
  const auto [it, is_new] = own_ops().try_emplace({d, how}, MPI_OP_NULL);
  if (is_new) {
    MPI_User_function* f =
        visit_floating(d, [&](auto tag) { return function_for<decltype(tag)>(how); });
    MPI_Op_create(f, /*commute=*/1, &it->second);
  }
  return {type, it->second};
}
void release_elements() {
  for (auto& [key, op] : own_ops()) MPI_Op_free(&op);
  own_ops().clear();
}

}  // namespace reprise::dist
