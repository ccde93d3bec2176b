#include "runtime/passes.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "program/check.h"
#include "program/print.h"

namespace reprise {
namespace {

bool listed(const char* variable, std::string_view name) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return false;
  std::string_view list = value;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == name || list.substr(0, comma) == "all") return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

bool pass_is_disabled(const char* name) { return listed("REPRISE_DISABLE", name); }

bool pass_is_dumped(const char* name) { return listed("REPRISE_DUMP", name); }

bool pass_is_timed(const char* name) { return listed("REPRISE_TIME", name); }

PassTimer::PassTimer(const char* name) : name_(name), begin_(std::chrono::steady_clock::now()) {}
PassTimer::~PassTimer() {
  if (!pass_is_timed(name_)) return;
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin_;
  std::fprintf(stderr, "reprise: %-16s %9.3f ms\n", name_, taken.count());
}

Program apply_pass(const char* name, Program (*pass)(const Program&), Program p) {
  if (!pass_is_disabled(name)) {
    const PassTimer timer(name);
    p = pass(p);
    check_after(name, p);
  }
  if (pass_is_dumped(name)) std::fprintf(stderr, "reprise: after %s\n%s\n", name, to_text(p).c_str());
  return p;
}

}  // namespace reprise
