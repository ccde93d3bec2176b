// The user's place while the library walks over programs, what counts as the user's code, and which
// part of a differentiated program is being made.
#pragma once

#include "reprise/errors.h"

#include <cstdint>

namespace reprise {

bool is_library_file(const char* file);  // the standard library or a public header of ours

// What an equation is there for: what the user wrote, what a checkpoint or the compiler plays
// again, what transposition made. Nothing depends on it but reports.
enum class Phase : std::uint8_t { forward, recompute, backward };
// Of an equation inside of a call: what the user wrote takes the part of the call.
inline Phase inside(Phase call, Phase equation) {
  return equation == Phase::forward ? call : equation;
}

Phase current_phase();  // of equations that are recorded now
class InPhase {
 public:
  explicit InPhase(Phase phase);
  ~InPhase();
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  Phase saved_;
};

// The equation being walked over stands for the user's place; what is recorded has its phase.
class AtEquation {
 public:
  explicit AtEquation(const Location& at, Phase phase = Phase::forward);
  ~AtEquation();
  AtEquation(const AtEquation&) = delete;
  AtEquation& operator=(const AtEquation&) = delete;

 private:
  Location saved_;
  bool saved_set_;
  InPhase phase_;
};

}  // namespace reprise
