// From a schedule to code: kernels compiled, library calls prepared, memory planned.
#pragma once

#include "runtime/code.h"

namespace reprise {

struct AssembleOptions {
  bool outputs_given = false;  // the body of a loop: outputs go where the caller says
  bool in_place = true;
  bool host_on_disk = false;
  std::vector<bool> donated = {};  // inputs whose memory outputs may take over; empty: none
  bool only_memory = false;        // kernels have no code to run: what is wanted is the plan
};
std::shared_ptr<const Code> assemble(std::shared_ptr<const plan::Schedule>, const AssembleOptions&);

}  // namespace reprise
