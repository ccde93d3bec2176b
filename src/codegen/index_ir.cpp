#include "codegen/equation_code.h"

namespace reprise::codegen {

std::span<const EquationRow> index_rows() { return {}; }

}  // namespace reprise::codegen
