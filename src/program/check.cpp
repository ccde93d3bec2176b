#include "program/check.h"

#include "program/primitive.h"
#include "program/print.h"

namespace reprise {
namespace {

[[noreturn]] void broken(const Program& p, const std::string& what) {
  fail<InternalError>("check: ", what, "\n", to_text(p));
}

void check_atom(const Program& p, const Atom& a, const std::vector<bool>& bound) {
  if (!a.is_var()) return;
  if (a.var >= static_cast<Var>(p.types.size()) || !bound[static_cast<std::size_t>(a.var)]) {
    broken(p, str("a variable is read before it is bound, got number ", a.var));
  }
}

// A body is shared by what calls it, and never changes.
struct Checked {};
void check_once(const Program& body) {
  derive<Checked>(body, "checked", [&] {
    check(body);
    return Checked{};
  });
}

}  // namespace

void check(const Program& p) {
  std::vector<bool> bound(p.types.size());
  auto bind_var = [&](Var v) {
    if (bound[static_cast<std::size_t>(v)]) broken(p, str("a variable is bound twice, got ", v));
    bound[static_cast<std::size_t>(v)] = true;
  };
  for (Var v : p.in) bind_var(v);
  for (const Equation& e : p.eqns) {
    Types in;
    for (const Atom& a : e.in) {
      check_atom(p, a, bound);
      in.push_back(p.type(a));
    }
    if (const std::string what = broken_param(*e.prim, e.params); !what.empty()) broken(p, what);
    for_each_program(e.params, [](const ProgramPtr& body) { check_once(*body); });
    const Types out = e.prim->type(in, e.params);
    if (out.size() != e.out.size()) broken(p, str(e.prim->name, ": wrong number of outputs"));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Type& t = p.type(e.out[i]);
      if (t.dtype != out[i].dtype || t.shape != out[i].shape) {
        broken(p, str(e.prim->name, ": output type ", t, " should be ", out[i]));
      }
      bind_var(e.out[i]);
    }
  }
  for (const Atom& a : p.out) check_atom(p, a, bound);
}

void check_after([[maybe_unused]] const char* pass, [[maybe_unused]] const Program& p) {
#if defined(REPRISE_CHECK)
  try {
    check(p);
  } catch (const Error& e) {
    throw InternalError(str("after ", pass, ": ", e.what()));
  }
#endif
}

}  // namespace reprise
