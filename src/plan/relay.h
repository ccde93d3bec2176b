// Slices of the outermost loops, and what a thread holds of them.
#pragma once

#include "plan/schedule.h"

namespace reprise::plan {

// Whether loops of these sizes, cut into equal slices along the outermost, touch in slice g only
// the elements [g * block, (g + 1) * block).
bool keeps_to_slices(const Ints& sizes, const Ints& strides, std::int64_t offset,
                     std::int64_t slices, std::int64_t block);

// One slice of a relay as a schedule of its own, for plan_memory: values that are passed on have a
// slice's size, what is used outside is given. Value number k of `roots` is root k of the schedule.
struct SliceSchedule {
  Schedule schedule;
  std::vector<Var> roots;
};
SliceSchedule slice_schedule(const Schedule&, const RelayStep&);

}  // namespace reprise::plan
