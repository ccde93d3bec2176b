// What a compiled program holds in memory at each of its steps, for people to look at.
//
// Steps of a loop's body stand once, behind the loop. At each step the bytes of the values that
// live there, the same 'gap' added everywhere, are what a run holds beyond its arguments: the
// largest sum is the plan's peak.
#pragma once

#include "plan/loop_drawing.h"
#include "plan/stages.h"

#include <string>
#include <vector>

namespace reprise {

// What the bytes of a value are there for.
enum class Holder : std::uint8_t { argument, output, residual, temporary, host };

struct TimelineOperation {
  const char* what = "";  // a primitive's name
  Location at;
  Stage stage = Stage::forward;
};

struct TimelineValue {
  std::string name;  // "v7", "the argument x", "scratch"
  std::string type;  // empty: scratch memory
  std::size_t bytes = 0;
  bool is_free = false;  // lies in memory that counts elsewhere, such as that of a donated argument
  Holder holder = Holder::temporary;
  TimelineOperation made_by;        // of an argument: none
  std::string place;                // "arena+64"
  std::size_t first = 0, last = 0;  // steps during which the bytes are its own
  std::string kept_because;  // not empty: the forward pass makes it, the backward pass reads it
};

struct TimelineStep {
  std::string what;  // "kernel", "matmul", "scan"
  Stage stage = Stage::forward;
  std::size_t body = 0;
  std::vector<TimelineOperation> operations;
  std::vector<std::size_t> reads, writes;  // values
};

// The program itself, or a body of a loop.
struct TimelineBody {
  std::string label;  // "scan, 8 times"
  std::size_t outer = 0;
  LoopDrawing loop = {};  // of steps that a reversal plays again
};

struct Timeline {
  std::vector<TimelineBody> bodies;  // the first is the program
  std::vector<TimelineStep> steps;
  std::vector<TimelineValue> values;
  std::size_t gap = 0;  // what the peak has beyond the fullest step: gaps between values, memory
                        // that libraries take
};

// Bytes that a value takes beyond the arguments.
std::size_t held_bytes(const TimelineValue&);

}  // namespace reprise
