#include "runtime/passes.h"

#include "base/error.h"
#include "plan/check_memory.h"
#include "program/check.h"
#include "program/print.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace reprise {
namespace {

thread_local PassTimes* watching = nullptr;

// In the order in which they run.
constexpr std::string_view passes[] = {"open_shard_maps",
                                       "inline",
                                       "one_predicate",
                                       "open_tangents",
                                       "open_mergeable",
                                       "simplify",
                                       "cse",
                                       "open",
                                       "dce",
                                       "split_reductions",
                                       "keep_loops",
                                       "keep",
                                       "expand",
                                       "convolutions",
                                       "budget",
                                       "hoist",
                                       "schedule",
                                       "fuse",
                                       "epilogue",
                                       "in_place",
                                       "assemble",
                                       "relay",
                                       "run"};

bool is_pass(std::string_view name) { return std::ranges::find(passes, name) != std::end(passes); }

// Calls visit with every name in the variable's list.
template <class Visit>
void for_each_name(const char* variable, const Visit& visit) {
  const char* value = std::getenv(variable);
  std::string_view list = value == nullptr ? "" : value;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    visit(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

bool listed(const char* variable, std::string_view name) {
  if (!is_pass(name)) fail<InternalError>("passes: '", name, "' is not in the list of passes");
  bool found = false;
  for_each_name(variable, [&](std::string_view n) { found = found || n == name || n == "all"; });
  return found;
}

std::string all_passes() {
  std::string text = "all";
  for (const std::string_view name : passes) text.append(", ").append(name);
  return text;
}

}  // namespace

void check_pass_names() {
  for (const char* variable : {"REPRISE_DISABLE", "REPRISE_DUMP", "REPRISE_TIME"}) {
    for_each_name(variable, [&](std::string_view name) {
      if (name == "all" || is_pass(name)) return;
      fail_with_hint<TypeError>("the names are " + all_passes(), variable,
                                ": no pass has this name, got '", name, "'");
    });
  }
}

bool pass_is_disabled(const char* name) { return listed("REPRISE_DISABLE", name); }

bool pass_is_dumped(const char* name) { return listed("REPRISE_DUMP", name); }

bool pass_is_timed(const char* name) { return listed("REPRISE_TIME", name); }

PassTimes::PassTimes() : outer_(watching) { watching = this; }
PassTimes::~PassTimes() { watching = outer_; }
void PassTimes::add(const char* name, double seconds) {
  const auto same =
      std::find_if(all_.begin(), all_.end(), [&](const auto& p) { return p.first == name; });
  if (same == all_.end())
    all_.emplace_back(name, seconds);
  else
    same->second += seconds;
}

PassTimer::PassTimer(const char* name) : name_(name), begin_(std::chrono::steady_clock::now()) {}
PassTimer::~PassTimer() {
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin_;
  if (watching != nullptr) watching->add(name_, taken.count() / 1000);
  if (!pass_is_timed(name_)) return;
  std::fprintf(stderr, "reprise: %-16s %9.3f ms\n", name_, taken.count());
}

namespace {

// One line per step: what it reads and writes.
std::string steps_text(const plan::Schedule& s) {
  std::string text;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    std::vector<std::string> reads, writes;
    for (Var v : s.steps[i].reads) reads.push_back(str("v", v));
    for (Var v : s.steps[i].writes) writes.push_back(str("v", v));
    text += str("  ", i, ": ", join(reads, " "), " -> ", join(writes, " "), "\n");
  }
  return text;
}
std::string text_of(const Program& p) { return to_text(p); }
std::string text_of(const SchedulePtr& s) { return steps_text(*s); }
void check_result(const char* name, const Program& p) { check_after(name, p); }
void check_result(const char* name, const SchedulePtr& s) { plan::check_after(name, *s); }

template <class T, class Pass>
T run_pass(const char* name, const Pass& pass, T x) {
  if (!pass_is_disabled(name)) {
    const PassTimer timer(name);
    x = pass(x);
    check_result(name, x);
  }
  if (pass_is_dumped(name))
    std::fprintf(stderr, "reprise: after %s\n%s\n", name, text_of(x).c_str());
  return x;
}

}  // namespace

Program apply_pass(const char* name, Program (*pass)(const Program&), Program p) {
  return run_pass(name, pass, std::move(p));
}
SchedulePtr apply_pass(const char* name, const std::function<SchedulePtr(const SchedulePtr&)>& pass,
                       SchedulePtr s) {
  return run_pass(name, pass, std::move(s));
}

}  // namespace reprise
