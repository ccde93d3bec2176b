#include "codegen/matmul_calls.h"

#include <algorithm>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;

// ----------------------------------------------------------------------------------------- folding
void drop_batch(MatmulSpec& s, std::size_t d) {
  for (Ints* x : {&s.batch, &s.a_strides, &s.b_strides, &s.c_strides}) {
    x->erase(x->begin() + static_cast<std::ptrdiff_t>(d));
  }
}

// Batch dimension d continues the rows of a and c (or the columns of b and c) where the other
// operand does not move: more rows, fewer matrices.
bool fold_into_matrix(MatmulSpec& s, std::size_t d) {
  const std::size_t row = s.batch.size(), column = row + 1;
  if (s.b_strides[d] == 0 && s.a_strides[d] == s.m * s.a_strides[row] &&
      s.c_strides[d] == s.m * s.c_strides[row]) {
    s.m *= s.batch[d];
  } else if (!s.bias && s.a_strides[d] == 0 && s.b_strides[d] == s.n * s.b_strides[column] &&
             s.c_strides[d] == s.n * s.c_strides[column]) {
    s.n *= s.batch[d];
  } else {
    return false;
  }
  drop_batch(s, d);
  return true;
}

bool fold_into_next(MatmulSpec& s, std::size_t d) {
  for (const Ints* strides : {&s.a_strides, &s.b_strides, &s.c_strides}) {
    if ((*strides)[d] != (*strides)[d + 1] * s.batch[d + 1]) return false;
  }
  s.batch[d + 1] *= s.batch[d];
  drop_batch(s, d);
  return true;
}

// Strides of single rows and columns mean nothing; these values let views count as dense.
void set_dense_where_free(Ints& strides, std::int64_t rows, std::int64_t columns) {
  std::int64_t& row = strides[strides.size() - 2];
  std::int64_t& column = strides[strides.size() - 1];
  if (columns == 1) column = 1;
  if (rows == 1) row = columns * column;
}

MatmulSpec simplified(MatmulSpec s) {
  for (std::size_t d = s.batch.size(); d-- > 0;) {
    if (s.batch[d] == 1) drop_batch(s, d);
  }
  set_dense_where_free(s.a_strides, s.m, s.k);
  set_dense_where_free(s.b_strides, s.k, s.n);
  set_dense_where_free(s.c_strides, s.m, s.n);
  for (std::size_t d = s.batch.size(); d-- > 0;) {
    if (d + 1 < s.batch.size()) fold_into_next(s, d);
  }
  for (std::size_t d = s.batch.size(); d-- > 0;) fold_into_matrix(s, d);
  return s;
}

// ----------------------------------------------------------------------------------------- cutting
// oneDNN divides long sums among threads when a is transposed, k is at least this and there are few
// columns; then bits would depend on the number of threads.
constexpr std::int64_t divided_k = 2048;
bool may_divide_k(const MatmulSpec& s) {
  return s.k >= divided_k && s.m > 1 && s.a_strides.end()[-2] < s.a_strides.end()[-1];
}
// Sums of at most divided_k - 1 products each, added up in order.
std::vector<MatmulCall> cut_k(const MatmulCall& whole) {
  const MatmulSpec& s = whole.spec;
  const bool sums_in_c = s.result == Dtype::f32;
  if (!may_divide_k(s) || !s.batch.empty() || s.b_strides[1] != 1 || !sums_in_c) return {whole};
  const std::int64_t parts = (s.k + divided_k - 2) / (divided_k - 1);
  const std::int64_t size = (s.k + parts - 1) / parts;
  std::vector<MatmulCall> calls;
  for (std::int64_t k = 0; k < s.k; k += size) {
    MatmulCall part{s, whole.a + k * s.a_strides[1], whole.b + k * s.b_strides[0], whole.c};
    part.spec.k = std::min(size, s.k - k);
    if (k > 0) part.spec.accumulate = true;
    if (k + size < s.k) part.spec.bias = false;
    calls.push_back(part);
  }
  return calls;
}

// The library broadcasts one operand along one batch dimension well; the rest it does wrong or not
// at all.
bool has_hard_broadcast(const MatmulSpec& s) {
  for (std::size_t d = 0; d < s.batch.size(); ++d) {
    const bool a = s.a_strides[d] == 0, b = s.b_strides[d] == 0;
    if ((a && b) || ((a || b) && s.batch.size() > 1)) return true;
  }
  return false;
}

// The library has at most twelve dimensions.
bool needs_unrolling(const MatmulSpec& s) {
  constexpr std::size_t most_batch_dims = 10;
  return has_hard_broadcast(s) || s.batch.size() > most_batch_dims;
}

void unroll(const MatmulCall& call, std::vector<MatmulCall>& calls) {
  const MatmulSpec& s = call.spec;
  if (!needs_unrolling(s)) {
    calls.push_back(call);
    return;
  }
  for (std::int64_t i = 0; i < s.batch[0]; ++i) {
    MatmulCall inner{s, call.a + i * s.a_strides[0], call.b + i * s.b_strides[0],
                     call.c + i * s.c_strides[0]};
    drop_batch(inner.spec, 0);
    inner.spec = simplified(inner.spec);
    unroll(inner, calls);
  }
}

std::vector<MatmulCall> unrolled(const MatmulSpec& s) {
  std::vector<MatmulCall> calls;
  unroll(MatmulCall{simplified(s)}, calls);
  return calls;
}

// Parts of the first batch dimension, or of the longer side of the result.
struct Side {
  bool by_batch, by_rows;
  std::int64_t size;
};
Side longest_side(const MatmulSpec& s) {
  const bool by_batch = !s.batch.empty(), by_rows = !by_batch && (s.m >= s.n || s.bias);
  return {by_batch, by_rows, by_batch ? s.batch[0] : by_rows ? s.m : s.n};
}
void cut_result(const MatmulCall& whole, std::int64_t step, std::vector<MatmulCall>& calls) {
  const MatmulSpec& s = whole.spec;
  const auto [by_batch, by_rows, size] = longest_side(s);
  for (std::int64_t i = 0; i < size; i += step) {
    MatmulCall part = whole;
    const std::int64_t count = std::min(step, size - i);
    (by_batch ? part.spec.batch[0] : by_rows ? part.spec.m : part.spec.n) = count;
    if (by_batch || by_rows) part.a += i * s.a_strides[0];
    if (by_batch) part.b += i * s.b_strides[0];
    if (!by_batch && !by_rows) part.b += i * s.b_strides[1];
    part.c += i * s.c_strides[by_batch || by_rows ? 0 : 1];
    calls.push_back(part);
  }
}

}  // namespace

bool result_is_empty(const MatmulSpec& s) {
  return s.m == 0 || s.n == 0 || std::find(s.batch.begin(), s.batch.end(), 0) != s.batch.end();
}

bool is_well_formed(const MatmulSpec& s) {
  const std::size_t rank = s.batch.size() + 2;
  if (s.a_strides.size() != rank || s.b_strides.size() != rank || s.c_strides.size() != rank)
    return false;
  const bool types =
      (s.dtype == Dtype::f32 && s.result == Dtype::f32) ||
      (s.dtype == Dtype::bf16 && (s.result == Dtype::bf16 || s.result == Dtype::f32));
  if (!types || s.m < 0 || s.n < 0 || s.k < 0) return false;
  if (result_is_empty(s)) return true;
  for (std::size_t d = 0; d < s.batch.size(); ++d) {
    if (s.batch[d] < 0 || s.a_strides[d] < 0 || s.b_strides[d] < 0) return false;
    if (s.batch[d] > 1 && s.c_strides[d] <= 0) return false;
  }
  const auto walks = [&](const Ints& strides, std::int64_t rows, std::int64_t columns) {
    return (rows <= 1 || strides[rank - 2] > 0) && (columns <= 1 || strides[rank - 1] > 0);
  };
  if (!walks(s.c_strides, s.m, s.n)) return false;
  return s.k == 0 || (walks(s.a_strides, s.m, s.k) && walks(s.b_strides, s.k, s.n));
}

// c^T = b^T a^T
MatmulSpec swapped(MatmulSpec s) {
  std::swap(s.m, s.n);
  std::swap(s.a_strides, s.b_strides);
  for (Ints* strides : {&s.a_strides, &s.b_strides, &s.c_strides}) {
    std::swap(strides->end()[-1], strides->end()[-2]);
  }
  return s;
}

Ints dense_strides(const Ints& batch, const Ints& strides, std::int64_t rows,
                   std::int64_t columns) {
  Ints dense(batch.size() + 2, 0);
  dense.end()[-1] = 1;
  dense.end()[-2] = columns;
  std::int64_t next = rows * columns;
  for (std::size_t d = batch.size(); d-- > 0;) {
    if (strides[d] == 0) continue;
    dense[d] = next;
    next *= batch[d];
  }
  return dense;
}

// With at most this many threads it does not.
int undivided_threads(const MatmulSpec& s, int threads) {
  constexpr std::int64_t columns_per_thread = 64, tile_threads = 15;
  std::int64_t most = threads;
  if (s.dtype == Dtype::bf16) most = std::min(most, tile_threads);
  if (may_divide_k(s)) {
    std::int64_t blocks = (s.n + columns_per_thread - 1) / columns_per_thread;
    for (std::int64_t size : s.batch) blocks *= size;
    most = std::min(most, blocks);
  }
  return static_cast<int>(most);
}

std::vector<MatmulCall> ordered_calls(const MatmulSpec& s) {
  std::vector<MatmulCall> calls;
  for (const MatmulCall& call : unrolled(s)) {
    const std::vector<MatmulCall> parts = cut_k(call);
    calls.insert(calls.end(), parts.begin(), parts.end());
  }
  return calls;
}

std::vector<MatmulCall> independent_calls(const MatmulSpec& s) {
  constexpr std::int64_t most_parts = 64, side_step = 192;
  std::vector<MatmulCall> calls;
  for (const MatmulCall& call : unrolled(s)) {
    const Side side = longest_side(call.spec);
    cut_result(call, side.by_batch ? (side.size + most_parts - 1) / most_parts : side_step, calls);
  }
  return calls;
}

std::vector<MatmulCall> parts_of(const MatmulSpec& s, std::int64_t most, std::int64_t least) {
  constexpr std::int64_t row_step = 16;  // whole vectors and register tiles
  std::int64_t work = s.m * s.n * s.k;
  for (std::int64_t size : s.batch) work *= size;
  const std::int64_t parts = std::clamp<std::int64_t>(work / std::max<std::int64_t>(least, 1), 1, most);
  if (parts == 1) return {MatmulCall{s}};
  const Side side = longest_side(s);
  std::int64_t step = (side.size + parts - 1) / parts;
  if (!side.by_batch) step = (step + row_step - 1) / row_step * row_step;
  std::vector<MatmulCall> calls;
  cut_result(MatmulCall{s}, step, calls);
  return calls;
}

}  // namespace reprise::codegen
