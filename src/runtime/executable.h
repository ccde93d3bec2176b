// A compiled program: immutable, runs from many threads at once.
#pragma once

#include "runtime/code.h"

namespace reprise {

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Code> code);
  // One value per input of the program; throws what evaluation throws, RuntimeError without memory.
  Arrays run(const Arrays& args, const Observer* observer = nullptr) const;

  const Code& code() const { return *code_; }

 private:
  Arrays run_timed(const Arrays& args) const;

  std::shared_ptr<const Code> code_;
  bool timed_;  // REPRISE_TIME=run: every call reports the time of each instruction
};

}  // namespace reprise
