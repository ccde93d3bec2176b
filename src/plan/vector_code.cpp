#include "plan/vector_code.h"

#include "ops/records.h"

#include <algorithm>

namespace reprise::plan {
namespace {

bool is_number(const Type& t) { return t.dtype != Dtype::float0 && t.dtype != Dtype::key; }

}  // namespace

bool has_vector_code(const Equation& e, std::span<const Type> in, const Type& out) {
  if (in.empty() || !is_number(out) || !std::all_of(in.begin(), in.end(), is_number)) return false;
  if (e.prim == &bitcast_convert_type_p) return itemsize(in[0].dtype) == itemsize(out.dtype);
  return e.prim->kind == Kind::elementwise || e.prim == &name_p || e.prim == &device_put_p;
}

}  // namespace reprise::plan
