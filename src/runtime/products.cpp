#include "runtime/products.h"

#include "base/machine.h"
#include "products/loop_dot.h"
#include "products/tiled_dot.h"
#include "plan/dot.h"
#include "plan/memory.h"
#include "runtime/threads.h"

#include <algorithm>

namespace reprise {
namespace {

// Parts depend on the shape alone, so that bits are the same with any number of threads.
constexpr std::int64_t most_small_parts = 4, most_large_parts = 32;

bool is_large(const codegen::MatmulSpec& s) { return work_of(s) >= machine::work_worth_threads; }

}  // namespace

std::int64_t work_of(const codegen::MatmulSpec& s) {
  std::int64_t work = s.m * s.n * s.k;
  for (std::int64_t n : s.batch) work *= n;
  return work;
}

std::shared_ptr<const codegen::Matmul> by_own_code(const codegen::MatmulSpec& s) {
  return codegen::can_tile(s) ? codegen::make_tiled_dot(s) : codegen::make_loop_dot(s);
}

codegen::MatmulSpec matmul_spec(const plan::Schedule& s, const plan::Step& step) {
  const auto& d = std::get<plan::DotStep>(step.what);
  const auto a = *plan::dot_operand(*d.eqn, 0, step.operands[0]),
             b = *plan::dot_operand(*d.eqn, 1, step.operands[1]);
  codegen::MatmulSpec spec;
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
  const auto c = *plan::dot_result(*s.program, *d.eqn, step.results[0]);
  spec.c_strides = c.batch_strides;
  spec.c_strides.insert(spec.c_strides.end(), {c.row_stride, c.column_stride});
  spec.bias = d.has_bias;
  spec.accumulate = d.accumulates;
  return spec;
}

// Many small matrices stay in the cache for the steps around them. What is added on the way out
// does not count: with it or without, sums have the same bits.
bool is_one_call(const codegen::MatmulSpec& spec) {
  if (!is_large(spec)) return false;
  if (!codegen::can_tile(spec)) return codegen::can_matmul(spec, num_threads());
  constexpr std::int64_t many = 4;  // as many as a relay passes on
  const std::int64_t matrices = work_of(spec) / (spec.m * spec.n * spec.k);
  const std::int64_t elements = spec.m * spec.k + spec.k * spec.n + spec.m * spec.n;
  return matrices < many ||
         elements * static_cast<std::int64_t>(itemsize(spec.dtype)) > machine::near_matrix;
}

Product make_product(const codegen::MatmulSpec& spec, int threads) {
  Product p;
  p.wakes_threads = is_large(spec);
  if (is_one_call(spec)) {
    p.parts.emplace_back(codegen::MatmulCall{spec}, codegen::make_matmul(spec, threads));
  } else {
    for (const codegen::MatmulCall& call :
         codegen::parts_of(spec, p.wakes_threads ? most_large_parts : most_small_parts,
                           machine::work_worth_a_part)) {
      const bool is_alike = !p.parts.empty() && p.parts.back().first.spec == call.spec;
      p.parts.emplace_back(call, is_alike ? p.parts.back().second : by_own_code(call.spec));
    }
  }
  for (const auto& [call, matmul] : p.parts)
    p.scratch_stride = std::max(p.scratch_stride, plan::aligned(matmul->scratch_bytes()));
  return p;
}

}  // namespace reprise
