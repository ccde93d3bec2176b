// Compiling with one pass of the pipeline left out.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <iterator>

// All that can be left out: opening checkpoints is what makes a program straight.
inline constexpr const char* optional_passes[] = {"inline", "open_mergeable",   "simplify",   "cse",
                                                  "dce",    "split_reductions", "keep_loops", "keep",
                                                  "expand", "convolutions",     "fuse",       "epilogue", "relay",  "in_place"};

class WithoutPass {
 public:
  explicit WithoutPass(const char* pass) { setenv("REPRISE_DISABLE", pass, 1); }
  ~WithoutPass() { unsetenv("REPRISE_DISABLE"); }
  WithoutPass(const WithoutPass&) = delete;
  WithoutPass& operator=(const WithoutPass&) = delete;
};

// Another pass with each call, for tables too long to be run without each.
inline const char* next_optional_pass() {
  static std::size_t n = 0;
  return optional_passes[n++ % std::size(optional_passes)];
}
