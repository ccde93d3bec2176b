// Linen: modules, layers and lifted transformations with the names and numbers of flax.linen.
#pragma once

#include "reprise/initializers.h"   // IWYU pragma: export
#include "reprise/nn_attention.h"   // IWYU pragma: export
#include "reprise/nn_functions.h"   // IWYU pragma: export
#include "reprise/nn_layers.h"      // IWYU pragma: export
#include "reprise/nn_lift.h"        // IWYU pragma: export
#include "reprise/nn_linear.h"      // IWYU pragma: export
#include "reprise/nn_module.h"      // IWYU pragma: export
#include "reprise/nn_norm.h"        // IWYU pragma: export
#include "reprise/nn_sequential.h"  // IWYU pragma: export
#include "reprise/random.h"         // IWYU pragma: export
