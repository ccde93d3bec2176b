#include "plan/matmul_spec.h"

#include "plan/dot.h"
#include "plan/schedule.h"

#include <optional>

namespace reprise::plan {
namespace {

// The number of outermost batch dimensions that make up the slices.
std::optional<std::size_t> sliced_dims(const MatmulSpec& s, std::int64_t slices) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < s.batch.size(); ++d) {
    n *= s.batch[d];
    if (n == slices) return d + 1;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t work_of(const MatmulSpec& s) {
  std::int64_t work = s.m * s.n * s.k;
  for (std::int64_t n : s.batch) work *= n;
  return work;
}

MatmulSpec matmul_spec(const Schedule& s, const Step& step) {
  const auto& d = std::get<DotStep>(step.what);
  const auto a = *dot_operand(*d.eqn, 0, step.operands[0]),
             b = *dot_operand(*d.eqn, 1, step.operands[1]);
  MatmulSpec spec;
  spec.dtype = s.types[static_cast<std::size_t>(step.operands[0].root)].dtype;
  spec.result = s.types[static_cast<std::size_t>(d.eqn->out[0])].dtype;
  spec.batch = a.batch;
  spec.m = a.free;
  spec.n = b.free;
  spec.k = a.contracted;
  spec.a_strides = a.batch_strides;
  spec.b_strides = b.batch_strides;
  spec.a_strides.insert(spec.a_strides.end(), {a.free_stride, a.contracted_stride});
  spec.b_strides.insert(spec.b_strides.end(), {b.contracted_stride, b.free_stride});
  const auto c = *dot_result(*s.program, *d.eqn, step.results[0]);
  spec.c_strides = c.batch_strides;
  spec.c_strides.insert(spec.c_strides.end(), {c.row_stride, c.column_stride});
  spec.bias = d.has_bias;
  spec.accumulate = d.accumulates;
  return spec;
}

MatmulSpec slice_of(MatmulSpec s, std::int64_t slices) {
  const auto dims = static_cast<std::ptrdiff_t>(sliced_dims(s, slices).value());
  for (Ints* x : {&s.batch, &s.a_strides, &s.b_strides, &s.c_strides})
    x->erase(x->begin(), x->begin() + dims);
  return s;
}

std::vector<SliceStart> slice_starts(const MatmulSpec& s, std::int64_t slices) {
  const std::size_t dims = sliced_dims(s, slices).value();
  std::vector<SliceStart> out(static_cast<std::size_t>(slices));
  for (std::int64_t g = 0; g < slices; ++g) {
    std::int64_t rest = g;
    for (std::size_t d = dims; d-- > 0; rest /= s.batch[d]) {
      const std::int64_t i = rest % s.batch[d];
      SliceStart& start = out[static_cast<std::size_t>(g)];
      start = {start.a + i * s.a_strides[d], start.b + i * s.b_strides[d],
               start.c + i * s.c_strides[d]};
    }
  }
  return out;
}

bool has_slices(const MatmulSpec& s, std::int64_t slices) {
  return sliced_dims(s, slices).has_value();
}

}  // namespace reprise::plan
