// How far a misspelt word is from one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace reprise {

// Letters to insert, drop or replace until a is b.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace reprise
