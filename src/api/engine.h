// The engine that compiles and evaluates.
#pragma once

#include "engine/engine.h"

namespace reprise {

const Engine& engine();

}  // namespace reprise
