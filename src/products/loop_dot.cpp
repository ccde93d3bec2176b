#include "products/loop_dot.h"

#include "base/cast.h"
#include "base/dtype.h"

#include <algorithm>

// The loops once for each kind of machine; the loader picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REPRISE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define REPRISE_CLONES
#endif

namespace reprise::codegen {
namespace {

struct Rows {
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column, c_row, c_column;
};

// c[i, :] = sum_k a[i, k] * b[k, :] for a block of columns that stays in registers or the first
// cache; every element is the sum over k in order.
template <class T, class P, class Out>
REPRISE_CLONES void multiply(const T* a, const T* b, Out* c, const Rows& r) {
  constexpr std::int64_t block = 64;
  P sums[block];
  for (std::int64_t i = 0; i < r.m; ++i) {
    for (std::int64_t first = 0; first < r.n; first += block) {
      const std::int64_t width = std::min(block, r.n - first);
      for (std::int64_t j = 0; j < width; ++j) sums[j] = P{0};
      for (std::int64_t k = 0; k < r.k; ++k) {
        const P x = static_cast<P>(a[i * r.a_row + k * r.a_column]);
        const T* row = b + k * r.b_row + first * r.b_column;
        if (r.b_column == 1) {
          for (std::int64_t j = 0; j < width; ++j) sums[j] += x * static_cast<P>(row[j]);
        } else {
          for (std::int64_t j = 0; j < width; ++j)
            sums[j] += x * static_cast<P>(row[j * r.b_column]);
        }
      }
      Out* to = c + i * r.c_row + first * r.c_column;
      for (std::int64_t j = 0; j < width; ++j) to[j * r.c_column] = cast_element<Out>(sums[j]);
    }
  }
}

template <class T, class P, class Out>
class LoopDot final : public Matmul {
 public:
  explicit LoopDot(const MatmulSpec& s)
      : batch_(s.batch), a_(s.a_strides), b_(s.b_strides), c_(s.c_strides) {
    const std::size_t d = batch_.size();
    rows_ = {s.m, s.n, s.k, a_[d], a_[d + 1], b_[d], b_[d + 1], c_[d], c_[d + 1]};
    for (std::int64_t n : batch_) products_ *= n;
  }
  std::size_t scratch_bytes() const override { return 0; }
  bool run(const void* a, const void* b, const void*, void* c, void*) const noexcept override {
    for (std::int64_t p = 0; p < products_; ++p) {
      std::int64_t rest = p, at_a = 0, at_b = 0, at_c = 0;
      for (std::size_t d = batch_.size(); d-- > 0;) {
        const std::int64_t i = rest % batch_[d];
        rest /= batch_[d];
        at_a += i * a_[d];
        at_b += i * b_[d];
        at_c += i * c_[d];
      }
      multiply<T, P, Out>(static_cast<const T*>(a) + at_a, static_cast<const T*>(b) + at_b,
                          static_cast<Out*>(c) + at_c, rows_);
    }
    return true;
  }

 private:
  std::vector<std::int64_t> batch_, a_, b_, c_;
  Rows rows_{};
  std::int64_t products_ = 1;
};

// Products are summed as the plain evaluator sums them: halves in float, integers so that they
// wrap; in 32 bits where the result has no more.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, Wrapping<T>, Compute<T>>;

template <class T, class Out>
std::shared_ptr<const Matmul> make(const MatmulSpec& s) {
  return std::make_shared<const LoopDot<T, Sum<T>, Out>>(s);
}

}  // namespace

std::shared_ptr<const Matmul> make_loop_dot(const MatmulSpec& s) {
  return visit_dtype(s.dtype, [&](auto tag) -> std::shared_ptr<const Matmul> {
    using T = decltype(tag);
    if (s.result == s.dtype) return make<T, T>(s);
    if constexpr (is_half<T>) {
      if (s.result == Dtype::f32) return make<T, float>(s);
    }
    fail<TypeError>("dot_general: no compiled product, got ", s.dtype, " to ", s.result);
  });
}

}  // namespace reprise::codegen
