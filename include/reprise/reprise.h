// Reprise: automatic differentiation in which you decide what is kept between the forward and the
// backward pass and what is played again.
#pragma once

#include "reprise/array.h"         // IWYU pragma: export
#include "reprise/autodiff.h"      // IWYU pragma: export
#include "reprise/budget.h"        // IWYU pragma: export
#include "reprise/check.h"         // IWYU pragma: export
#include "reprise/control.h"       // IWYU pragma: export
#include "reprise/debug.h"         // IWYU pragma: export
#include "reprise/function.h"      // IWYU pragma: export
#include "reprise/jit.h"           // IWYU pragma: export
#include "reprise/lax.h"           // IWYU pragma: export
#include "reprise/loops.h"         // IWYU pragma: export
#include "reprise/memory_curve.h"  // IWYU pragma: export
#include "reprise/ops.h"           // IWYU pragma: export
#include "reprise/program.h"       // IWYU pragma: export
#include "reprise/random.h"        // IWYU pragma: export
#include "reprise/remat.h"         // IWYU pragma: export
#include "reprise/report.h"        // IWYU pragma: export
