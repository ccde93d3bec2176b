// From a program to machine code: the pipeline.
#pragma once

#include <memory>

#include "runtime/executable.h"

namespace reprise {

// The program as the pipeline's last program pass leaves it.
ProgramPtr lowered(const Program&);

std::shared_ptr<const Executable> compile(const Program&);

}  // namespace reprise
