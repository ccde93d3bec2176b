// scan: a loop with a carry, consuming and producing stacked arrays.
//
//   body: (consts, carry, x) -> (carry, y)    scan: (consts, init, xs) -> (carry, ys)
#pragma once

#include "program/trace.h"

namespace reprise {

struct ScanShape {  // how operands and results of a scan divide
  std::size_t consts = 0, carry = 0;
  std::int64_t length = 0;
  bool reverse = false;
  std::int64_t unroll = 1;
};
ScanShape scan_shape(const Params&);
Arrays bind_scan(const ScanShape&, const ProgramPtr& body, const Arrays& args);

// A copy of the program with inputs / outputs in another order.
ProgramPtr permute_inputs(const Program&, const std::vector<std::size_t>& order);
ProgramPtr permute_outputs(const Program&, const std::vector<std::size_t>& order);

}  // namespace reprise
