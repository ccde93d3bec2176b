#include "base/at_exit.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace reprise {
namespace {

constexpr std::size_t most = 8;
void (*functions[most])() = {};
std::size_t count = 0;

// Thread-local objects of who calls exit are destroyed first of all.
struct EndOfMain {
  ~EndOfMain() {
    if (syscall(SYS_gettid) != getpid()) return;
    for (std::size_t i = 0; i < count; ++i) functions[i]();
  }
  void stand_by() const {}
};
thread_local const EndOfMain end_of_main;

}  // namespace

int at_exit(void (*f)()) {
  if (count < most) functions[count++] = f;
  end_of_main.stand_by();
  return std::atexit(f);
}

}  // namespace reprise
