// The numpy-style operations: dtype promotion, broadcasting, and JAX's names.
#pragma once

#include "reprise/nn_functions.h"  // IWYU pragma: export
#include "reprise/ops_math.h"      // IWYU pragma: export
#include "reprise/ops_reduce.h"    // IWYU pragma: export
#include "reprise/ops_shape.h"     // IWYU pragma: export
