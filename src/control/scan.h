// scan: a loop with a carry, consuming and producing stacked arrays.
//
//   body: (consts, carry, x) -> (carry, y)    scan: (consts, init, xs) -> (carry, ys)
#pragma once

#include "program/trace.h"
#include "transform/jvp.h"
#include "transform/vmap.h"

namespace reprise {

struct ScanShape {  // how operands and results of a scan divide
  std::size_t consts = 0, carry = 0;
  std::int64_t length = 0;
  bool reverse = false;
  std::int64_t unroll = 1;
  // carries that reverse mode keeps; 0: all that its steps need, stacked
  std::int64_t checkpoints = 0;
  std::int64_t disk_checkpoints = 0;  // and so many more on disk
};
ScanShape scan_shape(const Params&);
Params scan_params(const ScanShape&, const ProgramPtr& body);
Arrays bind_scan(const ScanShape&, const ProgramPtr& body, const Arrays& args);

// Types of what comes stacked, without and with the leading axis, and element i along it.
Type sliced(Type);
Type stacked(Type, std::int64_t length);
Array row(const Array& stacked, std::int64_t i);

// (consts, carry, xs) of a loop and their tangents as a loop; a carry that starts as a symbolic
// zero may become nonzero.
struct JvpScan {
  ScanShape shape;
  ProgramPtr body;  // (consts, dconsts, carry, dcarry, xs, dxs) -> (carry, dcarry, ys, dys)
  Arrays args;
  std::vector<bool> nonzero;  // per output of the body that was differentiated
};
JvpScan jvp_scan(const Arrays& x, const Tangents& dx, const Params& params);

// A loop body for mapped operands: which are mapped once the carries have settled, in front
// everywhere.
struct BatchedLoop {
  std::shared_ptr<const BatchedProgram> body;
  std::vector<bool> mapped;
};
BatchedLoop batched_loop(const Program& body, std::size_t consts, std::size_t carry,
                         std::vector<bool> mapped, std::int64_t n);

// A copy of the program with inputs / outputs in another order.
ProgramPtr permute_inputs(const Program&, const std::vector<std::size_t>& order);
ProgramPtr permute_outputs(const Program&, const std::vector<std::size_t>& order);

}  // namespace reprise
