// Running passes by name: logged (REPRISE_DUMP), timed (REPRISE_TIME), switched off
// (REPRISE_DISABLE). Each variable is a comma-separated list of pass names, or "all".
#pragma once

#include "plan/schedule.h"
#include "program/program.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reprise {

void check_pass_names();  // a TypeError for a name in the variables that no pass has
bool pass_is_disabled(const char* name);
bool pass_is_dumped(const char* name);
bool pass_is_timed(const char* name);

// Seconds of the passes that run on this thread while it stands, in the order of their first runs.
class PassTimes {
 public:
  PassTimes();
  ~PassTimes();
  PassTimes(const PassTimes&) = delete;
  PassTimes& operator=(const PassTimes&) = delete;
  void add(const char* name, double seconds);
  const std::vector<std::pair<std::string, double>>& all() const { return all_; }

 private:
  PassTimes* outer_;
  std::vector<std::pair<std::string, double>> all_;
};

// Measures one pass and reports it: to PassTimes, and to standard error when asked to.
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
// The same for passes over schedules.
using SchedulePtr = std::shared_ptr<const plan::Schedule>;
SchedulePtr apply_pass(const char* name, const std::function<SchedulePtr(const SchedulePtr&)>& pass,
                       SchedulePtr s);

}  // namespace reprise
