// Where the data of the tests lies.
#pragma once

#include <string>
#include <string_view>

// The path of a file or folder in tests/golden.
std::string golden_path(std::string_view name);
