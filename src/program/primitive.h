// One record per primitive: every rule of an operation in one place. Records are compile-time
// constants; a rule that is null does not exist, and using it is one clear RuleError.
#pragma once

#include "program/program.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reprise {

using Types = std::vector<Type>;
using Tangent = std::optional<Array>;  // nullopt: a symbolic zero
using Tangents = std::vector<Tangent>;
using Primals = std::vector<std::optional<Array>>;  // nullopt: the linear operand of a transpose
using Axis = std::optional<std::int64_t>;           // the mapped axis; nullopt: not mapped
using Axes = std::vector<Axis>;

struct Duals {
  Arrays out;
  Tangents tangents;
};
struct Batched {
  Arrays out;
  Axes axes;
};

// What a primitive is made of; passes ask the kind instead of keeping lists of primitives.
enum class Kind : std::uint8_t {
  elementwise,
  reduce,
  shape,
  dot,
  conv,
  index,
  constant,
  call,
  name,
  effect
};

// What must not be done with an equation besides what its values forbid. An equation with programs
// inside has the effects of all of them (program/effects.h).
struct Effect {
  bool is_ordered = false;   // stays in order with others that say so
  bool is_once = false;      // is not evaluated again where its results are missing
  bool is_distinct = false;  // is not merged with an equal one
  bool is_kept = false;      // is not dropped though nobody reads it
  bool is_shared = false;    // all ranks do it together: none alone decides whether it happens
  bool is_any() const { return is_ordered || is_once || is_distinct || is_kept || is_shared; }
};

// The scalar code of an elementwise function for n numbers in a row; y may be x. Machine code calls
// it where it has nothing quicker.
struct LaneCode {
  void (*f32)(const float* x, float* y, std::int64_t n) noexcept;
  void (*f64)(const double* x, double* y, std::int64_t n) noexcept;
};

class Split;  // transform/partial_eval.h

struct Primitive {
  const char* name;
  Kind kind;
  // Shape and dtype rule; throws TypeError. Runs before every evaluation and every staging.
  Types (*type)(const Types& in, const Params&) = nullptr;
  // Plain evaluation on concrete arrays: the reference semantics.
  Arrays (*eval)(const Arrays& x, const Params&, const Types& out) = nullptr;
  // Given x, dx and y = f(x): dy. Emits the tangent equations after the primal one.
  Tangents (*tangent)(const Arrays& x, const Tangents& dx, const Arrays& y,
                      const Params&) = nullptr;
  // The full rule, instead of `tangent`: computes y too.
  Duals (*jvp)(const Arrays& x, const Tangents& dx, const Params&) = nullptr;
  // As jvp, but dx belong to the linear program being recorded and y must not depend on them: a
  // call splits its body here. Without it jvp (or tangent) is used.
  Duals (*linearize)(const Arrays& x, const Tangents& dx, const Params&) = nullptr;
  // Cotangents of the linear operands (x[i] == nullopt), given those of the outputs.
  Tangents (*transpose)(const Tangents& ct, const Primals& x, const Types& in,
                        const Params&) = nullptr;
  // Operands with a mapped axis of size n somewhere -> outputs with a mapped axis somewhere.
  Batched (*batch)(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params&) = nullptr;
  // For calls: divides the equation between the known and the staged side of a split. Without it an
  // equation is known if all its operands are, else staged whole.
  void (*partial_eval)(const Equation&, Split&) = nullptr;
  // Drops unused outputs from a call equation; fills which inputs are still needed.
  std::optional<Equation> (*dce)(const Program&, const Equation&,
                                 const std::vector<bool>& used_outputs) = nullptr;
  // For calls: the param that holds a body which computes the same.
  const char* inlined_body = nullptr;
  // Params to print, in printing order, when not simply all of them sorted by name.
  std::vector<Param> (*printed_params)(const Params&) = nullptr;
  // All params that an equation has, by which texts are read and programs checked: rules find what
  // is declared here. Empty: there are none.
  std::span<const ParamRule> param_rules = {};
  // The inverse of `printed_params` for the parser: params as printed -> params as bound.
  Params (*parsed_params)(const Params& printed, const Types& in, const Types& out) = nullptr;
  // The record an equation of the text has, when its params ask for another one of the same name.
  const Primitive* (*parsed_as)(const Params&) = nullptr;
  // The number of operands; -1: any number, the type rule looks. The parser checks it.
  int arity = -1;
  Effect effect = {};
  // Of functions of one floating number; null: others have machine code by rules of their own, or
  // are evaluated.
  const LaneCode* lanes = nullptr;
  // The type rule says over which axes of a mesh results vary; calls do so by their bodies. Without
  // it results vary as the operands do, which `bind` brings to the same axes first.
  bool types_varying = false;

  Arrays bind(const Arrays& x, Params params = {}) const;  // checks types, then evaluates or stages
  Array bind1(const Arrays& x, Params params = {}) const { return bind(x, std::move(params))[0]; }
};

// The first param that breaks its rule, as "reshape: the param new_sizes must be ..."; empty: none.
std::string broken_param(const Primitive&, const Params&);

[[noreturn]] void no_such_rule(const Primitive&, const char* rule, const char* hint = "");

}  // namespace reprise
