// make_jaxpr, eval_shape and the text form of programs.
#include "reprise/program.h"

#include "api/flat.h"
#include "api/primitives.h"
#include "control/body.h"
#include "program/parse.h"
#include "program/print.h"
#include "transform/dce.h"

#include <ostream>

namespace reprise {

std::string Jaxpr::str(int width) const { return to_text(*program_, {.width = width}); }
std::ostream& operator<<(std::ostream& out, const Jaxpr& j) { return out << j.str(); }
std::size_t Jaxpr::size() const { return program_->eqns.size(); }
std::vector<Type> Jaxpr::in_types() const {
  Types all = program_->in_types();
  return {all.begin() + static_cast<std::ptrdiff_t>(consts_.size()), all.end()};
}
std::vector<Type> Jaxpr::out_types() const { return program_->out_types(); }

Arrays Jaxpr::eval(const Arrays& args, Location where) const {
  const AtUser at(where);
  const Types wanted = in_types();
  if (args.size() != wanted.size()) {
    fail<TypeError>("eval: wrong number of arguments, got ", args.size(), " for ", wanted.size());
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].shape() != wanted[i].shape || args[i].dtype() != wanted[i].dtype) {
      fail<TypeError>("eval: the argument must match its type, got ", args[i].type(), " for ",
                      wanted[i]);
    }
  }
  return finished(reprise::eval(*program_, concat(consts_, args)));
}

Jaxpr parse_jaxpr(std::string_view text) {
  auto program = std::make_shared<const Program>(parse_program(text, all_primitives()));
  return {std::move(program), {}};
}

LiveJaxpr dce_jaxpr(const Jaxpr& jaxpr, const std::vector<bool>& wanted_outputs) {
  const Program& program = *jaxpr.program();
  if (wanted_outputs.size() != program.out.size()) {
    fail<TypeError>("dce_jaxpr: one flag for each output is needed, got ", wanted_outputs.size(),
                    " for ", program.out.size());
  }
  DceProgram live = dce(program, wanted_outputs);
  const std::size_t consts = jaxpr.consts().size();
  const auto args_begin = live.used_inputs.begin() + static_cast<std::ptrdiff_t>(consts);
  std::vector<bool> used_args(args_begin, live.used_inputs.end());
  const auto keep = [consts](std::size_t i, bool is_used) { return i < consts || is_used; };
  auto kept = std::make_shared<const Program>(keep_inputs(std::move(live), keep));
  return {Jaxpr(std::move(kept), jaxpr.consts()), std::move(used_args)};
}

namespace detail {

Jaxpr trace_to_jaxpr(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  Traced t = trace_callee(f, "make_jaxpr", leaf_types(args));
  return {std::move(t.program), std::move(t.consts)};
}

Array abstract_array(const Type& type) { return make_abstract(type); }

Arrays trace_to_shapes(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  const Traced t = trace_callee(f, "eval_shape", leaf_types(args));
  Arrays shapes;
  for (const Type& type : t.program->out_types()) shapes.push_back(abstract_array(type));
  return shapes;
}

}  // namespace detail
}  // namespace reprise
