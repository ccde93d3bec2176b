#include "codegen/llvm_errors.h"

#include <llvm/Support/ErrorHandling.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace reprise::codegen {
namespace {

thread_local bool throws = false;

// Given back when memory ends: what follows, the message first, needs some.
constexpr std::size_t reserve_bytes = 256 << 10;
std::atomic<void*> reserve{nullptr};
void fill_reserve() {
  if (reserve.load() == nullptr) std::free(reserve.exchange(std::malloc(reserve_bytes)));
}

void on_failure(bool out_of_memory, const char* reason) {
  std::free(reserve.exchange(nullptr));
  if (!throws) {  // someone else's use of the library: as without us
    std::fprintf(stderr, "LLVM ERROR: %s\n", reason);
    std::abort();
  }
  LlvmFailure failure{out_of_memory, {}};
  std::strncpy(failure.reason, reason, sizeof(failure.reason) - 1);
  throw failure;
}
void on_fatal(void*, const char* reason, bool) { on_failure(false, reason); }
void on_bad_alloc(void*, const char* reason, bool) { on_failure(true, reason); }

}  // namespace

LlvmErrors::LlvmErrors() : before_(throws) {
  [[maybe_unused]] static const bool installed = [] {
    llvm::install_fatal_error_handler(on_fatal);
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
    return true;
  }();
  fill_reserve();
  throws = true;
}
LlvmErrors::~LlvmErrors() { throws = before_; }

}  // namespace reprise::codegen
