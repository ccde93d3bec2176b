// A function that jit has traced, and what an engine made of it once it is compiled.
#pragma once

#include "api/engine.h"
#include "program/program.h"

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
  std::shared_ptr<const CompiledProgram> compiled() const {
    const std::lock_guard lock(compiling_);
    if (!compiled_) compiled_ = engine().compile(*program, options);
    return compiled_;
  }
  // What it will be, for those who only look: of a function that was traced for shapes alone there
  // is no machine code.
  std::shared_ptr<const CompiledProgram> planned() const {
    if (!only_shapes) return compiled();
    const std::lock_guard lock(compiling_);
    if (compiled_) return compiled_;
    if (!planned_) {
      CompileOptions without_code = options;
      without_code.only_memory = true;
      planned_ = engine().compile(*program, without_code);
    }
    return planned_;
  }
  bool only_shapes = false;

 private:
  mutable std::mutex compiling_;
  mutable std::shared_ptr<const CompiledProgram> compiled_, planned_;
};

}  // namespace reprise::detail
