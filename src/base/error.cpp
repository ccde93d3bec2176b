#include "base/error.h"

namespace reprise {

std::string error_text(const std::string& message, const Location& at, const std::string& hint) {
  std::string text = message;
  const std::string place = to_string(at);
  if (!place.empty()) text += "\n  at " + place;
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}

void invariant_broken(const char* condition, const char* file, int line) {
  fail<InternalError>("internal: invariant broken, got ", condition, " at ", file, ":", line);
}

}  // namespace reprise
