// All cases of this folder run on the ranks that mpirun started.
#include <reprise/dist.h>

namespace {
[[maybe_unused]] const bool joined = (reprise::dist::init({.timeout_seconds = 60}), true);
}
