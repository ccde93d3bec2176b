// One operation on concrete arrays, outside any trace.
#pragma once

#include "program/primitive.h"

namespace reprise {

// By the engine (api/engine.cpp): the only call of the library that goes to a folder further down
// the map, since whoever records an operation cannot know who computes it.
Arrays evaluate(const Primitive&, const Arrays& x, const Params&, const Types& out);

}  // namespace reprise
