#include "codegen/equation_code.h"

#include "base/dtype.h"
#include "program/primitive.h"

#include <unordered_map>

namespace reprise::codegen {
namespace {

const EquationRow* row_of(const Primitive& prim) {
  static const auto& rows = *[] {
    auto& all = *new std::unordered_map<const Primitive*, const EquationRow*>;
    for (const auto& family : {index_rows(), cumulative_rows(), sort_rows()}) {
      for (const EquationRow& row : family) all.emplace(row.prim, &row);
    }
    return &all;
  }();
  const auto found = rows.find(&prim);
  return found == rows.end() ? nullptr : found->second;
}

void append(std::string& key, const Type& t) {
  key += short_name(t.dtype);
  key += python_tuple(t.shape);
}

}  // namespace

plan::Loops unit_loops(std::int64_t units, std::int64_t operations) {
  plan::Loops l = plan::loops_over(units, operations);
  l.columns = 1;
  if (!l.by_columns) return l;
  l.by_columns = false;
  l.block = l.items = l.fine_block = l.fine_items = 1;
  return l;
}

bool has_code(const EquationKernel& k) {
  const EquationRow* row = row_of(*k.eqn->prim);
  return row != nullptr && row->can_emit(k);
}

EmittedKernel emit_equation(llvm::Module& module, const std::string& name, const EquationKernel& k,
                            const VectorTarget& target) {
  return row_of(*k.eqn->prim)->emit(module, name, k, target);
}

std::string key_of(const EquationKernel& k) {
  std::string key = "=";  // no key of a fused kernel begins so
  key += k.eqn->prim->name;
  for (const Param& p : k.eqn->params.items()) {
    // Programs say again what the primitive's name says: how two numbers are combined.
    if (std::holds_alternative<ProgramPtr>(p.value) || std::holds_alternative<Programs>(p.value))
      continue;
    key += p.key;
    key += python_text(p.value);
  }
  for (std::size_t i = 0; i < k.in.size(); ++i) {
    append(key, k.in[i]);
    // its bits
    if (!k.eqn->in[i].is_var()) key += "=" + std::to_string(k.eqn->in[i].literal.integer);
  }
  for (const Type& t : k.out) append(key, t);
  return key;
}

}  // namespace reprise::codegen
