// Instructions for scans, conditions and while loops.
//
//   loop_code: a loop's equation, the code of its bodies, where its values are  ->  instruction
#pragma once

#include "runtime/code.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace reprise {

using Bodies = std::vector<std::shared_ptr<const Code>>;

// Where the values of a loop are.
struct LoopPlaces {
  std::function<Ref(std::size_t)> operand, result;
  std::function<Ref(std::size_t)> scratch;  // at this many bytes
  Ref host;
};
// What runs inside of it. The bodies' arena stands first in the scratch memory, then, of a while
// loop, the condition's result, then the second places of carried values.
struct LoopParts {
  const Bodies& bodies;
  std::size_t arena = 0;
  const std::vector<bool>& in_place;  // carried values that steps update where they lie
  // of carried values: the stacked output that holds all of them
  const std::vector<std::optional<std::size_t>>& stacks;
};

// Numbers of the first carried value among the loop's operands and the body's inputs, and of all
// those inputs.
struct CarryShape {
  std::size_t first_operand, first_in, inputs;
};
CarryShape carry_shape(const Equation& e);
// The outputs of a loop that are carried from step to step.
std::vector<Var> carried_by(const Equation& e);

Instruction loop_code(const plan::Schedule&, const plan::Step&, const Equation&, const LoopParts&,
                      const LoopPlaces&);

}  // namespace reprise
