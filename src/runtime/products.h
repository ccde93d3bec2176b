// How the products of a schedule are computed: as one call, or in parts of one thread each.
#pragma once

#include "products/matmul_calls.h"
#include "plan/schedule.h"

namespace reprise {

std::int64_t work_of(const codegen::MatmulSpec&);  // multiply-adds

// On one thread.
std::shared_ptr<const codegen::Matmul> by_own_code(const codegen::MatmulSpec&);

// Of a DotStep.
codegen::MatmulSpec matmul_spec(const plan::Schedule&, const plan::Step&);

// Whether such a product is one call that shares its parts among threads by itself: a large one, of
// few or large matrices.
bool is_one_call(const codegen::MatmulSpec&);

struct Product {
  // in any order
  std::vector<std::pair<codegen::MatmulCall, std::shared_ptr<const codegen::Matmul>>> parts;
  bool wakes_threads = false;      // so much work that threads are woken for the parts
  std::size_t scratch_stride = 0;  // of each thread
};
Product make_product(const codegen::MatmulSpec&, int threads);

}  // namespace reprise
