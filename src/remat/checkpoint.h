// remat2: a call whose values are recomputed in the backward pass, as its policy says.
//
//   linearize:  remat2[f]: a -> b
//     =>  f's known part inline: a -> (b, res)     and     remat2[differentiated]: (res, a, ȧ) -> ḃ
#pragma once

#include "program/trace.h"
#include "reprise/policies.h"
#include "transform/partial_eval.h"

#include <optional>
#include <string_view>

namespace reprise {

extern const Primitive remat_p;

// In Program::arg_names of a staged body: an input that its policy saved, not one of the function.
inline constexpr const char* saved_by_policy = "<saved>";

// A policy as a param; null when there is none.
struct PolicyParam : OpaqueParam {
  explicit PolicyParam(Policy p) : policy(std::move(p)) {}
  Policy policy;
  std::string text() const override { return policy.jax_repr(); }
  bool equal(const OpaqueParam& other) const override {
    return policy.key() == static_cast<const PolicyParam&>(other).policy.key();
  }
};
// One flag per operand: whether recomputation may not be merged with the forward pass through it.
struct FlagsParam : OpaqueParam {
  explicit FlagsParam(std::vector<bool> f) : flags(std::move(f)) {}
  std::vector<bool> flags;
  std::string text() const override;
};

// The inverse of its text in programs; null for a policy whose text does not tell what it saves.
std::optional<Policy> policy_from_repr(std::string_view repr);

// Of a checkpoint equation; a TypeError when only the text of a program knows the policy.
Policy policy_of(const Params&);

EquationInfo describe(const Program&, const Equation&, const OutputNames&);
SplitPolicy split_policy(const Policy&);

}  // namespace reprise
