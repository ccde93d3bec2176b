#include "codegen/index_ir.h"

#include "base/dtype.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise::codegen {
namespace {

// Literals as start indices are part of the code; an array that is one has no memory to read.
template <std::size_t arrays>
bool are_in_memory(const EquationKernel& k) {
  const auto begin = k.eqn->in.begin();
  return itemsize(k.out[0].dtype) > 0 &&
         std::all_of(begin, begin + arrays, [](const Atom& a) { return a.is_var(); });
}

// Keys are no numbers to the evaluator either.
bool can_scatter(const EquationKernel& k) {
  return are_in_memory<3>(k) && k.out[0].dtype != Dtype::key;
}

}  // namespace

std::span<const EquationRow> index_rows() {
  static constexpr EquationRow rows[] = {{&gather_p, are_in_memory<2>, emit_gather},
                                         {&dynamic_slice_p, are_in_memory<1>, emit_gather},
                                         {&scatter_p, can_scatter, emit_scatter},
                                         {&scatter_add_p, can_scatter, emit_scatter},
                                         {&scatter_mul_p, can_scatter, emit_scatter},
                                         {&scatter_min_p, can_scatter, emit_scatter},
                                         {&scatter_max_p, can_scatter, emit_scatter},
                                         {&dynamic_update_slice_p, are_in_memory<2>, emit_scatter}};
  return rows;
}

}  // namespace reprise::codegen
