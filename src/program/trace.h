// Recording programs.
//
//   trace: (Arrays -> Arrays), types  =>  { lambda consts ; args . let ... }, values of consts
//
// `Primitive::bind` asks where an operation belongs: to the innermost open trace among the current
// one and those of its operands; without any it is evaluated. Closed-over arrays become leading
// inputs, numbers become literals.
#pragma once

#include "program/primitive.h"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise {

using FlatFunction = std::function<Arrays(const Arrays&)>;

struct Traced {
  ProgramPtr program;
  Arrays consts;  // values of the leading inputs
  // Values that the function asked for while it was traced (item()), by variable; empty if none.
  std::vector<std::optional<Array>> known;
};

struct TraceInfo {
  const char* transform = "make_jaxpr";     // for messages
  std::string name = {};                    // of the function
  std::vector<std::string> arg_names = {};  // for messages and residual tables
  // The program becomes the body of a call: its constants are ordinary leading inputs.
  bool body = false;
  // Set: the function may ask for numbers, these are the arguments (may themselves be traced).
  const Arrays* concrete_args = nullptr;
};

Traced trace(const FlatFunction& f, const Types& in, const TraceInfo& info = {});

// A program being recorded.
class Trace {
 public:
  explicit Trace(TraceInfo info, bool current);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::uint64_t id() const { return id_; }
  Array input(const Type&);
  Arrays record(const Primitive&, const Arrays&, Params&&, Types&&);
  Atom atom(const Array&);  // a variable, a literal, or a new constant
  Array concrete_value(const Array& traced, const char* what);
  Traced finish(const Arrays& out);
  // The parts of finish(), for linear programs whose outputs may be symbolic zeros.
  Program& program() { return program_; }
  const Arrays& consts() const { return consts_; }

 private:
  void seal();
  std::string blame(Var) const;

  std::uint64_t id_;
  TraceInfo info_;
  bool current_;
  Trace* outer_ = nullptr;
  Program program_;
  std::vector<Var> args_, const_vars_;
  Arrays consts_;
  std::unordered_map<std::uint64_t, Var> const_of_;  // identity of a constant -> variable
  std::vector<std::optional<Array>> values_;         // of the evaluated prefix
  std::size_t evaluated_ = 0;
};

// A type in the place of an array: of no trace (is_abstract).
Array make_abstract(Type);

// The innermost open trace that an operation on x belongs to; null: evaluate.
Trace* target_trace(const Arrays& x);
bool is_tracing();  // some trace is current on this thread

// Evaluates in the current context: computes when nothing is traced, else inlines the equations
// into the current trace. Values are dropped after their last reader.
Arrays eval(const Program&, Arrays args);
// For each equation, which of its operand variables are not read again: freed after it.
const std::vector<std::vector<Var>>& last_reads(const Program&);

}  // namespace reprise
