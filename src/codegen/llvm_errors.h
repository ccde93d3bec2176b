// LLVM ends the process when memory ends or when it meets what it cannot compile. Inside an
// LlvmErrors scope of this thread it throws LlvmFailure instead. LLVM knows no exceptions: nothing
// of what it was at work on may be touched again, not even to destroy it.
#pragma once

namespace reprise::codegen {

struct LlvmFailure {
  bool out_of_memory = false;
  char reason[256] = {};
};

class LlvmErrors {
 public:
  LlvmErrors();
  ~LlvmErrors();
  LlvmErrors(const LlvmErrors&) = delete;
  LlvmErrors& operator=(const LlvmErrors&) = delete;

 private:
  bool before_;
};

}  // namespace reprise::codegen
