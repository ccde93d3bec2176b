// NNX: models as objects that hold their state, with Flax's names and numbers (docs/nnx.md).
//
//   struct MLP : nnx::Module {
//     nnx::List<nnx::Linear> layers;
//     MLP(int num_layers, int features, nnx::Rngs& rngs) {
//       for (int i = 0; i < num_layers; ++i) layers.append(nnx::Linear(features, features, rngs));
//     }
//     Array operator()(Array x) {
//       for (auto& layer : layers) x = rp::nn::relu(layer(x));
//       return x;
//     }
//     REPRISE_FIELDS(layers)
//   };
//   nnx::Rngs rngs(0);
//   MLP model(2, 4, rngs);
//   auto forward = nnx::remat([](MLP& m, Array x) { return m(x); });
#pragma once

#include "reprise/nnx/attention.h"   // IWYU pragma: export
#include "reprise/nnx/fields.h"      // IWYU pragma: export
#include "reprise/nnx/graph.h"       // IWYU pragma: export
#include "reprise/nnx/inspect.h"     // IWYU pragma: export
#include "reprise/nnx/layers.h"      // IWYU pragma: export
#include "reprise/nnx/loops.h"       // IWYU pragma: export
#include "reprise/nnx/module.h"      // IWYU pragma: export
#include "reprise/nnx/optimizer.h"   // IWYU pragma: export
#include "reprise/nnx/rngs.h"        // IWYU pragma: export
#include "reprise/nnx/state.h"       // IWYU pragma: export
#include "reprise/nnx/summary.h"     // IWYU pragma: export
#include "reprise/nnx/transforms.h"  // IWYU pragma: export
#include "reprise/nnx/variable.h"    // IWYU pragma: export
