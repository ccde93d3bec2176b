#include "plan/timeline.h"

#include "plan/memory.h"

namespace reprise {

std::size_t held_bytes(const TimelineValue& v) {
  return v.is_free || v.holder == Holder::argument ? 0 : plan::aligned(v.bytes);
}

}  // namespace reprise
