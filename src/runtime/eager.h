// Code of single operations on large arrays outside of jit: the last ones used are kept.
#pragma once

#include <cstddef>

namespace reprise {

void release_eager_code();
std::size_t eager_code_count();

}  // namespace reprise
