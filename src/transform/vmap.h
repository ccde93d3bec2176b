// Mapping over an axis.
//
//   vmap:  p: a -> b   =>   a[n] -> b[n]        in the current context
#pragma once

#include "program/trace.h"

namespace reprise {

// axes[i] == nullopt: the input is not mapped. Outputs keep whatever axis their rules give.
Batched vmap(const Program& p, const Arrays& args, const Axes& axes, std::int64_t n);

// The mapped body of a call. Outputs that depend on a mapped input keep the axis their rules give
// (OutAxes::natural) or have it in front; `force` maps outputs in front even if they do not depend.
enum class OutAxes : std::uint8_t { natural, front };
struct BatchedProgram {
  ProgramPtr program;
  Arrays consts;
  Axes out_axes;
};
std::shared_ptr<const BatchedProgram> batched_program(const Program& p, const Axes& axes,
                                                      std::int64_t n, OutAxes out_axes,
                                                      const std::vector<bool>& force = {});

// x with its mapped axis at `to`; an unmapped x is broadcast along a new axis of size n.
Array axis_at(const Array& x, const Axis& from, std::int64_t to, std::int64_t n);

}  // namespace reprise
