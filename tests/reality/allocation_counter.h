// Bytes that this process has allocated, counted from outside the library: malloc and its family,
// and mmap, are replaced for the whole program.
#pragma once

#include <cstddef>

namespace allocation_counter {

std::size_t live();
std::size_t peak();
void reset_peak();
// From now on requests of so many bytes and more get nothing; 0: all are served.
void refuse_from(std::size_t bytes);

}  // namespace allocation_counter
