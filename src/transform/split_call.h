// Splitting a call by splitting its body: the known call returns residuals, the staged one takes
// them.
//
//   call[f]: (a1, a2) -> (b1, b2)   =>   call[known]: a1 -> (b1, res)
//                                        call[staged]: (res, a1, a2) -> b2
#pragma once

#include "transform/forward.h"
#include "transform/partial_eval.h"

namespace reprise {

// What became of a call that was split: masks of its operands and results, and its residuals with
// where the caller of the known call finds them.
struct CallParts {
  const std::vector<bool>&unknown, &available;          // operands
  const std::vector<bool>&unknown_out, &available_out;  // results
  const Types& residuals;
  const std::vector<OutputSource>& from;  // per residual
};

struct CallSplitOptions {
  const char* body;  // the param that holds it
  // A residual that is an operand or a result of the known call is not returned once more.
  bool forward = false;
  // Adjusts the params of both calls; given which operands are unknown and available.
  void (*adjust)(const std::vector<bool>& unknown, const std::vector<bool>& available,
                 Params& known, Params& staged) = nullptr;
  // The same for calls whose params speak of every operand and result.
  void (*adjust_parts)(const CallParts&, Params& known, Params& staged) = nullptr;
};
void split_call(const Equation& e, Split& s, const CallSplitOptions& options);

// In a split_invariant. The staged call takes residuals after its own operands, and a known output
// that the caller has is not returned.
void split_invariant_call(const Equation& e, Split& s, const char* body);

}  // namespace reprise
