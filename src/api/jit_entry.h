// A function that jit has traced, and its executable once it is compiled.
#pragma once

#include "reprise/jit.h"
#include "runtime/compile.h"

#include <algorithm>
#include <mutex>

namespace reprise::detail {

struct JitEntry {
  JitEntry(ProgramPtr p, Arrays c, CompileOptions o)
      : program(std::move(p)),
        consts(std::move(c)),
        options(std::move(o)),
        is_shareable(std::none_of(consts.begin(), consts.end(), is_traced)) {}

  ProgramPtr program;
  Arrays consts;
  CompileOptions options;
  bool is_shareable;
  // Compiled when it first runs on numbers; one that is only staged never is.
  std::shared_ptr<const Executable> compiled() const {
    const std::lock_guard lock(compiling_);
    if (!executable_) executable_ = compile(*program, options);
    return executable_;
  }

 private:
  mutable std::mutex compiling_;
  mutable std::shared_ptr<const Executable> executable_;
};

}  // namespace reprise::detail
