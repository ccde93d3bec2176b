#include "products/matmul_calls.h"

#include "base/machine.h"
#include "plan/loops.h"

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

// ----------------------------------------------------------------------------------------- cutting
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
void cut_side(const MatmulCall& whole, const Side& side, std::int64_t step,
              std::vector<MatmulCall>& calls) {
  const MatmulSpec& s = whole.spec;
  const auto [by_batch, by_rows, size] = side;
  for (std::int64_t i = 0; i < size; i += step) {
    MatmulCall part = whole;
    const std::int64_t count = std::min(step, size - i);
    (by_batch ? part.spec.batch[0] : by_rows ? part.spec.m : part.spec.n) = count;
    if (by_batch || by_rows) part.a += i * s.a_strides[0];
    if (by_batch) part.b += i * s.b_strides[0];
    if (!by_batch && !by_rows) {
      part.b += i * s.b_strides[1];
      part.bias += i;
    }
    part.c += i * s.c_strides[by_batch || by_rows ? 0 : 1];
    calls.push_back(part);
  }
}

// As many that a thread which is held up does not hold up the others for long, and so few that what
// the library copies of the other operand for each of them costs little.
std::int64_t parts_worth(const MatmulSpec& s) {
  constexpr std::int64_t some = 8;
  std::int64_t work = s.m * s.n * s.k;
  for (std::int64_t size : s.batch) work *= size;
  return std::max(std::clamp<std::int64_t>(work / machine::work_worth_threads, 1, some),
                  std::min(work / machine::large_work, machine::most_library_parts));
}

// Rows, for which nothing is copied; where they are few and b lies in columns, those too: then
// parts of c are copied, but none of b.
void cut_matrix(const MatmulCall& call, std::int64_t parts, std::vector<MatmulCall>& calls) {
  constexpr std::int64_t row_step = 16, column_step = 64, good = machine::good_library_part,
                         some = 4;
  const MatmulSpec& s = call.spec;
  const auto step = [](std::int64_t size, std::int64_t count, std::int64_t least,
                       std::int64_t unit) {
    return plan::ceil_div(std::max(least, plan::ceil_div(size, count)), unit) * unit;
  };
  const bool cuts_columns = s.b_strides[0] == 1 && s.b_strides[1] != 1 && s.n >= 2 * good;
  const std::int64_t least_rows = s.k * s.n <= machine::library_operand_in_cache ? good / 4
                                  : cuts_columns || s.m >= some * good           ? good
                                                                                 : good / 2;
  const std::int64_t rows = step(s.m, parts, least_rows, row_step);
  std::vector<MatmulCall> rows_of_parts;
  cut_side(call, {false, true, s.m}, rows, rows_of_parts);
  const std::int64_t down = std::ssize(rows_of_parts);
  const std::int64_t across = cuts_columns && down < some ? plan::ceil_div(parts, down) : 1;
  for (const MatmulCall& part : rows_of_parts) {
    cut_side(part, {false, false, s.n}, step(s.n, across, good, column_step), calls);
  }
}

// Parts of the outermost dimension that has enough; matrices for themselves where it has not.
void cut(const MatmulCall& call, std::int64_t parts, std::vector<MatmulCall>& calls) {
  const MatmulSpec& s = call.spec;
  if (s.batch.empty()) return cut_matrix(call, parts, calls);
  const std::int64_t size = s.batch[0];
  if (size >= parts) return cut_side(call, {true, false, size}, plan::ceil_div(size, parts), calls);
  std::vector<MatmulCall> single;
  cut_side(call, {true, false, size}, 1, single);
  for (MatmulCall& one : single) {
    drop_batch(one.spec, 0);
    cut(one, plan::ceil_div(parts, size), calls);
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
  const bool is_half = s.dtype == Dtype::bf16 || s.dtype == Dtype::f16;
  const bool is_float = is_half || s.dtype == Dtype::f32 || s.dtype == Dtype::f64;
  const bool types = is_float && (s.result == s.dtype || (is_half && s.result == Dtype::f32));
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

std::vector<MatmulCall> library_calls(const MatmulSpec& s) {
  const std::vector<MatmulCall> whole = unrolled(s);
  std::vector<MatmulCall> calls;
  for (const MatmulCall& call : whole) {
    cut(call, plan::ceil_div(parts_worth(call.spec), std::ssize(whole)), calls);
  }
  return calls;
}

std::vector<MatmulCall> parts_of(const MatmulSpec& s, std::int64_t most, std::int64_t least) {
  constexpr std::int64_t row_step = 16;  // whole vectors and register tiles
  std::int64_t work = s.m * s.n * s.k;
  for (std::int64_t size : s.batch) work *= size;
  const std::int64_t parts =
      std::clamp<std::int64_t>(work / std::max<std::int64_t>(least, 1), 1, most);
  if (parts == 1) return {MatmulCall{s}};
  const Side side = longest_side(s);
  std::int64_t step = (side.size + parts - 1) / parts;
  if (!side.by_batch) step = (step + row_step - 1) / row_step * row_step;
  std::vector<MatmulCall> calls;
  cut_side(MatmulCall{s}, side, step, calls);
  return calls;
}

}  // namespace reprise::codegen
