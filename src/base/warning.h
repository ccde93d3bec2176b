// Warnings: what is allowed but hardly meant, said once for each line of the user's code.
#pragma once

#include <string>

namespace reprise {

// Prints "reprise: warning: text", and the user's line, unless it has been said of that line
// before.
void warn(const std::string& text);

}  // namespace reprise
