// Running passes by name: logged (REPRISE_DUMP), timed (REPRISE_TIME), switched off (REPRISE_DISABLE).
// Each variable is a comma-separated list of pass names, or "all".
#pragma once

#include <chrono>
#include <string>

#include "program/program.h"

namespace reprise {

bool pass_is_disabled(const char* name);
bool pass_is_dumped(const char* name);
bool pass_is_timed(const char* name);

// Measures one pass and reports it to standard error when asked to.
class PassTimer {
 public:
  explicit PassTimer(const char* name);
  ~PassTimer();
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

 private:
  const char* name_;
  std::chrono::steady_clock::time_point begin_;
};

// p after the pass, or p itself when the pass is switched off. The result is checked.
Program apply_pass(const char* name, Program (*pass)(const Program&), Program p);

}  // namespace reprise
