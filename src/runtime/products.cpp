#include "runtime/products.h"

#include "base/machine.h"
#include "codegen/emit_ops.h"
#include "plan/memory.h"
#include "products/loop_dot.h"
#include "products/tiled_dot.h"
#include "runtime/threads.h"

#include <algorithm>

namespace reprise {
namespace {

// Parts depend on the shape alone, so that bits are the same with any number of threads.
constexpr std::int64_t most_small_parts = 4, most_large_parts = 32;

bool is_large(const codegen::MatmulSpec& s) {
  return plan::work_of(s) >= machine::work_worth_threads;
}

}  // namespace

std::shared_ptr<const codegen::Matmul> by_own_code(const codegen::MatmulSpec& s) {
  return codegen::can_tile(s) ? codegen::make_tiled_dot(s) : codegen::make_loop_dot(s);
}

// Many small matrices stay in the cache for the steps around them. What is added on the way out
// does not count: with it or without, sums have the same bits.
bool is_one_call(const codegen::MatmulSpec& spec) {
  if (!is_large(spec)) return false;
  if (!codegen::can_tile(spec)) return codegen::can_matmul(spec, num_threads());
  constexpr std::int64_t many = 4;  // as many as a relay passes on
  const std::int64_t matrices = plan::work_of(spec) / (spec.m * spec.n * spec.k);
  const std::int64_t elements = spec.m * spec.k + spec.k * spec.n + spec.m * spec.n;
  return matrices < many ||
         elements * static_cast<std::int64_t>(itemsize(spec.dtype)) > machine::near_matrix;
}

plan::Capabilities cpu_capabilities() {
  return {codegen::has_vector_code, codegen::can_tile, is_one_call};
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
