#include "base/stack.h"

#include "base/error.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace reprise {
namespace {

struct Stack {
  std::uintptr_t begin = 0, end = 0;  // equal: unknown
};

// Of the calling thread.
Stack find_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  std::size_t size = 0;
  const int found = pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return found == 0 ? Stack{first, first + size} : Stack{};
}

}  // namespace

void check_nesting(const char* op) {
  thread_local const Stack stack = find_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here < stack.begin || here >= stack.end) return;  // a stack that is not the thread's own
  if (here - stack.begin > (stack.end - stack.begin) / 4) return;
  fail_with_hint<RuntimeError>("repeat with scan or fori_loop, or raise the limit (ulimit -s)", op,
                               ": functions are nested too deeply, got a stack of ",
                               stack.end - stack.begin, " bytes that is nearly full");
}

}  // namespace reprise
