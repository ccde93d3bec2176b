// The records of the calls: primitives whose params hold programs.
#pragma once

#include "program/primitive.h"

#include <span>

namespace reprise {

extern const Primitive jit_p, closed_call_p, eval_jaxpr_p;         // call.cpp
extern const Primitive custom_jvp_call_p;                          // custom_jvp.cpp
extern const Primitive custom_vjp_call_p, custom_lin_p;            // custom_vjp.cpp
extern const Primitive scan_p;                                     // scan.cpp
extern const Primitive cond_p;                                     // cond.cpp
extern const Primitive while_p;                                    // while.cpp
extern const Primitive shard_map_p;                                // shard_map.cpp
extern const Primitive checkpointed_scan_p, checkpointed_while_p;  // checkpointed_loop.cpp
extern const Primitive checkpointed_tangents_p;                    // checkpointed_tangents.cpp
extern const Primitive checkpointed_reverse_p;                     // checkpointed_reverse.cpp

std::span<const Primitive* const> control_primitives();

}  // namespace reprise
