#include "reprise/jit.h"

#include "api/flat.h"
#include "control/body.h"
#include "control/records.h"

namespace reprise::detail {

struct JitEntry {
  ProgramPtr program;
  Arrays consts;
};

std::string types_key(const Arrays& args) {
  std::string key;
  for (const Array& a : args) {
    key += to_string(a.type());
    key += a.weak_type() ? "w" : ";";
  }
  return key;
}

bool shareable(const JitEntry& entry) {
  for (const Array& c : entry.consts) {
    if (is_traced(c)) return false;
  }
  return true;
}

JitCall call_jit(const Callee& f, const Arrays& args, std::shared_ptr<const JitEntry> known) {
  const AtUser at(f.at);
  if (!known) {
    Traced t = trace(f.run, types_of(args),
                     {.transform = "jit", .name = f.name, .arg_names = f.arg_names, .body = true});
    known = std::make_shared<const JitEntry>(JitEntry{std::move(t.program), std::move(t.consts)});
  }
  const Arrays out = jit_p.bind(concat(known->consts, args),
                                {{"name", f.name}, {"jaxpr", known->program}});
  return {std::move(known), finished(out)};
}

}  // namespace reprise::detail
