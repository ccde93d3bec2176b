// Forward differentiation.
//
//   jvp:        p: a -> b   =>   (a, ȧ) -> (b, ḃ)            in the current context
//   linearize:  p: a -> b   =>   a -> (b, res),  linear: (res, ȧ) -> ḃ
#pragma once

#include "program/trace.h"

namespace reprise {

// Evaluates or stages p and its tangents. Tangents that are nullopt are symbolic zeros.
Duals jvp(const Program& p, const Arrays& primals, const Tangents& tangents);

// The jvp as a program: constants of custom rules, inputs, then the tangents of `active` inputs;
// outputs, then the tangents of those that are not symbolic zeros (or that `instantiate` asks for).
struct JvpProgram {
  ProgramPtr program;
  Arrays consts;
  std::vector<bool> nonzero_out;
};
std::shared_ptr<const JvpProgram> jvp_program(const Program& p, const std::vector<bool>& active,
                                              const std::vector<bool>& instantiate = {});

struct Linearized {
  Arrays out;
  ProgramPtr linear;          // (residuals..., active tangents...) -> nonzero output tangents
  Arrays residuals;           // values of the constants of `linear`, in order of first use
  std::vector<bool> nonzero;  // which outputs have a tangent
};
struct LinearizeOptions {
  // Literals that promotion made count as residuals (the program was traced for this call).
  bool promoted_literals = false;
  // Outputs whose tangent is wanted even if it is zero.
  std::vector<bool> instantiate = {};
  // Outputs that are differentiated; the others count as having no tangent. Empty: all.
  std::vector<bool> differentiated = {};
  // Values already computed while the program was traced.
  const std::vector<std::optional<Array>>* known = nullptr;
};
Linearized linearize(const Program& p, const Arrays& primals, const std::vector<bool>& active,
                     const LinearizeOptions& options = {});

// The split as two programs, shared per (p, active, instantiate, forward).
//   known:  a -> (b, residuals that are not forwarded)     linear: (all residuals, ȧ) -> ḃ
struct LinearizedProgram {
  ProgramPtr known;
  Arrays consts;  // leading inputs of `known`: arrays that custom rules close over
  ProgramPtr linear;
  std::vector<bool> nonzero;
  std::size_t extra_outputs = 0;                           // residuals that `known` returns
  std::vector<std::optional<std::size_t>> forwarded = {};  // per residual: the input it simply is
};
std::shared_ptr<const LinearizedProgram> linearize_program(const Program& p,
                                                           const std::vector<bool>& active,
                                                           const std::vector<bool>& instantiate,
                                                           const std::vector<bool>& may_forward);

// Zeros of the tangent type of `t`: same shape; float0 for integers, bools and keys.
Array instantiate_zeros(const Type& t);
// The same, recorded in the linear program that the given tangents belong to.
Array linear_zeros(const Tangents& beside, const Type& t);
Type tangent_type(const Type& t);

}  // namespace reprise
