// The records of the calls: primitives whose params hold programs.
#pragma once

#include <span>

#include "program/primitive.h"

namespace reprise {

extern const Primitive jit_p, closed_call_p;                           // call.cpp
extern const Primitive custom_jvp_call_p;                              // custom_jvp.cpp
extern const Primitive custom_vjp_call_p, custom_lin_p;                // custom_vjp.cpp
extern const Primitive scan_p;                                         // scan.cpp
extern const Primitive cond_p;                                         // cond.cpp
extern const Primitive while_p;                                        // while.cpp

std::span<const Primitive* const> control_primitives();

}  // namespace reprise
