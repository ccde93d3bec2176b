// Which values of a program leave the arena for the host.
//
//   o_h = device_put[Host] o;   ...;   o' = device_put[Device] o_h          o_h lives on the host
//   ys_h = scan[{ ... in device_put[Host] o }];  scan[{ device_put[Device] y ... }] ys_h     so do stacks
//
//   .., o_h, .. = checkpointed_scan ..;  checkpointed_reverse .., o_h, ..     checkpoints on disk
//
// Only transfers and loops with checkpoints may touch such a value: one that anything else reads or
// makes, an argument or a result of the whole program stays in the arena like any other.
#pragma once

#include "program/program.h"

#include <vector>

namespace reprise::plan {

// Inputs and outputs of a body that its caller keeps on the host; empty: none.
struct HostBorder {
  std::vector<bool> inputs, outputs;
};

bool is_put_to_host(const Program&, const Equation&);    // a device_put from the device's memory
bool is_put_to_device(const Program&, const Equation&);  // a device_put from the host's memory

// of every variable
std::vector<bool> find_host_values(const Program&, const HostBorder& border = {});
// of the loop's bodies
HostBorder border_of(const Equation& loop, const std::vector<bool>& on_host);

}  // namespace reprise::plan
