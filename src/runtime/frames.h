// Where the memory of running code is, and that of bodies inside of it.
#pragma once

#include "runtime/code.h"

#include <cstring>
#include <optional>

namespace reprise {

using Slots = std::byte* const*;

inline std::byte* address(Slots slots, const Ref& r) { return slots[r.slot] + r.offset; }

inline std::size_t position(const HostFrame& host, const Ref& r) {
  return host.slots[r.slot] + r.offset;
}

inline void copy(Slots slots, const Ref& from, const Ref& to, std::size_t bytes) {
  if (address(slots, from) != address(slots, to))
    std::memcpy(address(slots, to), address(slots, from), bytes);
}

// The frame of a loop's body whose own region on the host is `region`; null where the body has no
// transfers.
class InnerHost {
 public:
  InnerHost(const Code& body, const HostFrame* outer, const Ref& region) {
    if (!body.uses_host) return;
    frame_.emplace(body, *outer->spill);
    frame_->slots[arena_slot] = position(*outer, region);
  }
  HostFrame* get() { return frame_ ? &*frame_ : nullptr; }

 private:
  std::optional<HostFrame> frame_;
};

// Where the first step finds a carried value: what steps update in place is copied there, unless it
// is there already.
inline std::byte* start(const RunScan::Carry& c, Slots slots) {
  std::byte *const initial = address(slots, c.initial), *const result = address(slots, c.result);
  if (address(slots, c.spare) != result) return initial;
  copy(slots, c.initial, c.result, c.bytes);
  return result;
}

// Loops with checkpoints, by the schedules of control/loop_schedule.h.
void run_steps(const RunForward&, Slots, const Context&, bool is_new_team);
void run_steps(const RunReverse&, Slots, const Context&, bool is_new_team);

}  // namespace reprise
