// How long a schedule runs on one thread, by a model: speeds of base/machine.h, bytes and
// operations of its steps. Good for comparing plans of one program.
#pragma once

#include "plan/schedule.h"

namespace reprise::plan {

double seconds_of(const Schedule&);  // loops count all their steps; of branches the dearest
double seconds_of(const Schedule&, const Step&);
// Operations of an equation alone, memory not counted; programs inside as if nothing were fused.
double work_seconds(const Program&, const Equation&);
double traffic_seconds(double bytes);

}  // namespace reprise::plan
