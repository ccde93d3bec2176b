// How the products of a schedule are computed: as one call, or in parts of one thread each.
#pragma once

#include "plan/capabilities.h"
#include "plan/schedule.h"
#include "products/matmul_calls.h"

namespace reprise {

// On one thread.
std::shared_ptr<const codegen::Matmul> by_own_code(const codegen::MatmulSpec&);

// Whether such a product is one call that shares its parts among threads by itself: a large one, of
// few or large matrices.
bool is_one_call(const codegen::MatmulSpec&);

// What plans may count on.
plan::Capabilities cpu_capabilities();

struct Product {
  // in any order
  std::vector<std::pair<codegen::MatmulCall, std::shared_ptr<const codegen::Matmul>>> parts;
  bool wakes_threads = false;      // so much work that threads are woken for the parts
  std::size_t scratch_stride = 0;  // of each thread
};
Product make_product(const codegen::MatmulSpec&, int threads);

}  // namespace reprise
