// How the products of a schedule are computed: by the library or by code of our own, whole or in parts.
#pragma once

#include "codegen/matmul_calls.h"
#include "plan/schedule.h"

namespace reprise {

// Multiply-adds from which it pays to wake threads.
inline constexpr std::int64_t worth_threads = 1 << 20;
std::int64_t work_of(const codegen::MatmulSpec&);  // multiply-adds

// By code of our own, on one thread.
std::shared_ptr<const codegen::Matmul> by_own_code(const codegen::MatmulSpec&);

// Of a DotStep.
codegen::MatmulSpec matmul_spec(const plan::Schedule&, const plan::Step&);

// Whether oneDNN computes such a product: a large one that it takes without copying much.
bool by_library(const codegen::MatmulSpec&);

struct Product {
  std::vector<std::pair<codegen::MatmulCall, std::shared_ptr<const codegen::Matmul>>> parts;  // in any order
  bool wakes_threads = false;      // so much work that threads are woken for the parts
  std::size_t scratch_stride = 0;  // of each thread
};
Product make_product(const codegen::MatmulSpec&, int threads);

}  // namespace reprise
