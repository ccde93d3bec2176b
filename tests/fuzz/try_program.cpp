#include "fuzz/try_program.h"

#include "api/primitives.h"
#include "program/check.h"
#include "program/parse.h"
#include "program/print.h"
#include "program/trace.h"
#include "reprise/errors.h"
#include "runtime/compile.h"
#include "transform/jvp.h"
#include "transform/vmap.h"

#include <cmath>
#include <stdexcept>

using namespace reprise;

namespace {

// How much work a run is at most; loops multiply what is inside.
struct Work {
  std::int64_t elements = 0, equations = 0;
  bool is_bounded = true;
};

void add_work(const Program& p, std::int64_t times, Work& work) {
  constexpr std::int64_t most = 1 << 20;
  for (const Type& t : p.types) {
    std::int64_t size = times;
    for (std::int64_t d : t.shape) {
      if (__builtin_mul_overflow(size, d, &size) || size > most) {
        work.is_bounded = false;
        return;
      }
    }
    work.elements += size;
  }
  for (const Equation& e : p.eqns) {
    const std::string_view name = e.prim->name;
    work.equations += times;
    std::int64_t repeated = times;
    if (name == "scan")
      repeated *= std::min<std::int64_t>(e.params.get<std::int64_t>("length"), 1 << 16);
    if (name == "while") work.is_bounded = false;
    if (work.equations > 20000 || work.elements > most || repeated > 20000) work.is_bounded = false;
    if (!work.is_bounded) return;
    for_each_program(e.params, [&](const ProgramPtr& inner) { add_work(*inner, repeated, work); });
  }
}
// Sizes that params name and no variable has: windows, dilations, powers.
bool has_large_numbers(const Program& p) {
  bool found = false;
  for (const Equation& e : p.eqns) {
    for (const Param& param : e.params.items()) {
      if (const auto* n = std::get_if<std::int64_t>(&param.value))
        found = found || std::abs(*n) > 1 << 16;
      if (const auto* list = std::get_if<Ints>(&param.value)) {
        for (std::int64_t n : *list) found = found || std::abs(n) > 1 << 10;
      }
    }
    for_each_program(e.params,
                     [&](const ProgramPtr& inner) { found = found || has_large_numbers(*inner); });
  }
  return found;
}

Arrays some_values(const Program& p) {
  Arrays x;
  for (const Type& t : p.in_types()) {
    std::vector<std::byte> bytes(t.nbytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 3 == 0);
    x.push_back(from_bytes(bytes.data(), t));
  }
  return x;
}

// Errors of the user's are answers.
template <class F>
void attempt(const char* what, F&& f) {
  try {
    f();
  } catch (const InternalError& e) {
    throw std::logic_error(std::string(what) + ": " + e.what());
  } catch (const Error&) {
  } catch (const std::logic_error&) {
    throw;
  } catch (const std::exception& e) {
    throw std::logic_error(std::string(what) + ": " + e.what());
  }
}

void differentiate(const Program& p) {
  std::vector<bool> active;
  for (const Type& t : p.in_types()) active.push_back(is_floating(t.dtype));
  attempt("jvp", [&] { check(*jvp_program(p, active)->program); });
  attempt("linearize", [&] {
    check(*linearize_program(p, active, {}, std::vector<bool>(p.in.size()))->linear);
  });
  attempt("vmap", [&] {
    check(*batched_program(p, Axes(p.in.size(), Axis(0)), 2, OutAxes::natural)->program);
  });
}

}  // namespace

void try_program(std::string_view text) {
  std::optional<Program> read;
  attempt("parse", [&] { read = parse_program(text, all_primitives()); });
  if (!read) return;
  const Program& p = *read;
  try {
    check(p);
    const std::string printed = to_text(p);
    if (to_text(parse_program(printed, all_primitives())) != printed) {
      throw std::logic_error("what was printed prints another way");
    }
  } catch (const Error& e) {
    throw std::logic_error(std::string("a program that was read: ") + e.what());
  }
  Work work;
  add_work(p, 1, work);
  if (!work.is_bounded || has_large_numbers(p)) return;
  differentiate(p);
  attempt("evaluate", [&] { eval(p, some_values(p)); });
  attempt("compile", [&] { compile(p)->run(some_values(p)); });
}
