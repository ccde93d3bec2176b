#include "base/location.h"

#include <cstring>

namespace reprise {
namespace {

struct Current {
  Location at;
  bool set = false;
  Location fallback;  // the call site of the innermost transform that is running user code
};
thread_local Current current;
thread_local Phase phase_now = Phase::forward;

bool find_library_file(const char* file) {
  return std::strstr(file, "/include/c++/") != nullptr ||
         std::strstr(file, "include/reprise/") != nullptr;
}

}  // namespace

bool is_library_file(const char* file) {
  // File names are literals: remember the verdict for the last few pointers seen by this thread.
  struct Seen {
    const char* file = nullptr;
    bool library = false;
  };
  thread_local Seen seen[8];
  thread_local unsigned next = 0;
  for (const Seen& s : seen) {
    if (s.file == file) return s.library;
  }
  Seen& slot = seen[next++ % 8];
  slot = {file, find_library_file(file)};
  return slot.library;
}

const Location& user_location() { return current.at; }

std::string to_string(const Location& at) {
  if (at.line == 0) return "";
  std::string_view function = at.function;
  if (function == "operator()" || function.starts_with("operator()<")) function = "<lambda>";
  const char* slash = std::strrchr(at.file, '/');
  const std::string column = at.column == 0 ? "" : str(":", at.column);
  const std::string in = function.empty() ? "" : str(" (", function, ")");  // a text has none
  return str(slash ? slash + 1 : at.file, ":", at.line, column, in);
}

AtUser::AtUser(const Location& at) : set_(!current.set) {
  if (!set_) return;
  current.set = true;
  const bool replace = at.line == 0 || is_library_file(at.file);
  current.at = replace ? current.fallback : at;
}
AtUser::~AtUser() {
  if (!set_) return;
  current.set = false;
  current.at = {};
}

Phase current_phase() { return phase_now; }
InPhase::InPhase(Phase phase) : saved_(phase_now) { phase_now = phase; }
InPhase::~InPhase() { phase_now = saved_; }

AtEquation::AtEquation(const Location& at, Phase phase)
    : saved_(current.at), saved_set_(current.set), phase_(inside(phase_now, phase)) {
  current.at = at;
  current.set = true;
}
AtEquation::~AtEquation() {
  current.at = saved_;
  current.set = saved_set_;
}

InUserCode::InUserCode()
    : saved_(current.at), saved_fallback_(current.fallback), saved_set_(current.set) {
  if (current.set) current.fallback = current.at;
  current.at = {};
  current.set = false;
}
InUserCode::~InUserCode() {
  current.at = saved_;
  current.set = saved_set_;
  current.fallback = saved_fallback_;
}

}  // namespace reprise
