// Compiling with one pass of the pipeline left out.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <iterator>

// All that can be left out: opening checkpoints is what makes a program straight.
inline constexpr const char* optional_passes[] = {
    "inline",           "one_predicate", "open_mergeable", "simplify", "cse",          "dce",
    "split_reductions", "keep_loops",    "keep",           "expand",   "convolutions", "fuse",
    "epilogue",         "relay",         "in_place",       "hoist"};

class WithoutPass {
 public:
  explicit WithoutPass(const char* pass) { setenv("REPRISE_DISABLE", pass, 1); }
  ~WithoutPass() { unsetenv("REPRISE_DISABLE"); }
  WithoutPass(const WithoutPass&) = delete;
  WithoutPass& operator=(const WithoutPass&) = delete;
};

// Another one for every number, for tables too long to be run without each. A row's number is its
// own, not its place in an order of tests, so that a failure comes again when the row runs by
// itself.
inline const char* optional_pass(std::size_t number) {
  return optional_passes[number % std::size(optional_passes)];
}
