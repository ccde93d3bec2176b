// Start indices that may be negative.
#pragma once

#include "reprise/array.h"

namespace reprise {

bool is_unsigned(Dtype dtype);

// index, or index + size where it is negative: lt, add, select_n. Unsigned indices stay as they
// are.
Array wrap_negative(const Array& index, std::int64_t size);

}  // namespace reprise
