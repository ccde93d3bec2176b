// Work that passes have done on this thread: turns of the loops that a large program makes long.
// Tests hold it against the size of the program; nothing else reads it.
#pragma once

#include <cstdint>

namespace reprise {

inline thread_local std::uint64_t work_done = 0;
inline void count_work(std::uint64_t turns = 1) { work_done += turns; }

}  // namespace reprise
