// The functions that the tool derives from a program: checkpointed, and with its gradients.
#pragma once

#include "input.h"
#include "policy_text.h"
#include "reprise/jit.h"

#include <memory>
#include <string>
#include <vector>

namespace reprise::cli {

// A function and what it is traced for.
struct TypedFunction {
  detail::Callee function;
  Arrays args;  // placeholders
};

TypedFunction as_function(const Input&);
// The checkpoints of the program take the policy; a program without any becomes one checkpoint.
TypedFunction checkpointed(Input, const PolicyChoice&);
// (inputs, cotangents) -> (outputs, gradients of the `wrt` inputs). A program that returns one
// floating scalar is a loss: its cotangent is 1. Of any other each floating output takes a
// cotangent as one more argument, called ct0, ct1, ... by the number of the output.
TypedFunction with_gradients(const Input&, const PolicyChoice&, const std::vector<bool>& wrt);

// Which inputs `--wrt` chooses, by name or by number of the argument, separated by commas; empty:
// all floating arguments, and no constants. Throws UsageError, or InputError when nothing is
// floating.
std::vector<bool> wrt_mask(const Input&, const std::string& chosen);

std::vector<std::string> names_in(const Input&, const std::vector<bool>& mask);

// The function as jit takes it: planned when it is asked for, without machine code.
std::shared_ptr<const detail::JitEntry> traced_entry(const TypedFunction&,
                                                     const JitOptions& options);

}  // namespace reprise::cli
