// A compiled program: immutable, runs from many threads at once.
#pragma once

#include "runtime/code.h"

namespace reprise {

class Executable {
 public:
  Executable(std::shared_ptr<const Code> code, Program source);
  // One value per input of the program; throws what evaluation throws, RuntimeError without memory.
  Arrays run(const Arrays& args, const Observer* observer = nullptr) const;

  const Code& code() const { return *code_; }
  const Program& source() const { return source_; }  // as it was given to compile()

 private:
  std::shared_ptr<const Code> code_;
  Program source_;
};

}  // namespace reprise
