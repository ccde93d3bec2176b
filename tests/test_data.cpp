#include "test_data.h"

// The one file that is told a path of this checkout: another checkout finds all others in the
// compiler's cache.
std::string golden_path(std::string_view name) {
  return std::string(REPRISE_TEST_DATA) + "/" + std::string(name);
}
