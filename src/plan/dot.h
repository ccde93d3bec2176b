// dot_general as a batched product of matrices with strides.
#pragma once

#include "plan/view.h"

namespace reprise::plan {

// One operand: batch dimensions with sizes and strides, then the free and the contracted
// dimensions, each merged to one. Strides count elements.
struct DotOperand {
  Ints batch, batch_strides;
  std::int64_t free = 1, contracted = 1;
  std::int64_t free_stride = 1, contracted_stride = 1;
};
// nullopt: some dimensions that belong together do not walk with one stride.
std::optional<DotOperand> dot_operand(const Equation&, std::size_t k, const View&);

// The operand's dimensions in an order in which they always merge: batch, free, contracted.
Ints dot_order(const Equation&, std::size_t k, std::size_t rank);

// Where the result goes: strides of the batch dimensions, of rows and of columns.
struct DotResult {
  Ints batch_strides;
  std::int64_t row_stride = 1, column_stride = 1;
};
std::optional<DotResult> dot_result(const Program&, const Equation&, const View&);

// Of dtypes that compiled products have; expand.h makes all others of these.
bool is_compiled_dot(const Program&, const Equation&);
bool is_compiled_product(const Type& lhs, const Type& rhs, const Type& out);

}  // namespace reprise::plan
