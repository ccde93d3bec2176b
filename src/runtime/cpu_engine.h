// The engine for the processor: kernels by LLVM, products by our own code and oneDNN.
#pragma once

#include "engine/engine.h"

namespace reprise {

const Engine& cpu_engine();

}  // namespace reprise
