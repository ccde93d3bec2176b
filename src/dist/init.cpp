#include "base/dtype.h"
#include "dist/ranks.h"
#include "reprise/dist.h"
#include "reprise/errors.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace reprise::dist {
namespace {

Ranks* ranks = nullptr;
std::terminate_handler terminate_before = nullptr;

// Others have this long to hear of a failure before this process, and with it the run, is gone.
void give_time() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

void leave() {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (ranks == nullptr || is_over != 0) return;
  if (ranks->leave()) {
    MPI_Finalize();
    return;
  }
  give_time();
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// An exception that nobody catches ends all ranks, and they learn why.
[[noreturn]] void end_with_error() {
  std::string what = "no exception";
  if (const std::exception_ptr now = std::current_exception()) {
    try {
      std::rethrow_exception(now);
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
      what = "an exception of another kind";
    }
  }
  ranks->tell_failure(what);
  give_time();
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

// When a rank dies mpirun ends the others by this signal: they say where they were.
void end_by_signal(int signal) {
  const char* const begin = "reprise: a rank was ended by a signal in ";
  static_cast<void>(!write(2, begin, std::strlen(begin)));
  static_cast<void>(!write(2, ranks->place(), std::strlen(ranks->place())));
  static_cast<void>(!write(2, "\n", 1));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void check_other(const char* op, std::int64_t other) {
  if (other >= 0 && other < size() && other != rank()) return;
  fail<TypeError>(op, ": the other rank is one from 0 to ", size() - 1, " but not this one (",
                  rank(), "), got ", other);
}

}  // namespace

void init(const InitOptions& options) {
  if (ranks != nullptr) return;
  if (!(options.timeout_seconds > 0))
    fail<TypeError>("dist::init: the time limit must be positive, got ", options.timeout_seconds);
  int has_begun = 0, granted = 0;
  MPI_Initialized(&has_begun);
  if (has_begun == 0) {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted);
    std::atexit(leave);
  }
  ranks = new Ranks(options.timeout_seconds);
  set_communicator(ranks);
  if (ranks->size() == 1) return;
  terminate_before = std::set_terminate(end_with_error);
  struct sigaction now = {};
  sigaction(SIGTERM, nullptr, &now);
  if (now.sa_handler == SIG_DFL) std::signal(SIGTERM, end_by_signal);
}
std::int64_t rank() { return communicator().rank(); }
std::int64_t size() { return communicator().size(); }
void barrier() {
  if (ranks != nullptr) ranks->barrier();
}

void send(const Array& x, std::int64_t to, Location at) {
  const AtUser scope(at);
  check_other("send", to);
  auto kept = std::make_shared<const Array>(x);
  visit_dtype(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (Number<T>)
      ranks->send(kept->data<T>().data(), x.nbytes(), to, kept);
    else
      fail<TypeError>("send: halves go as float32, got ", x.type());
  });
}
Array recv(const Type& type, std::int64_t from, Location at) {
  const AtUser scope(at);
  check_other("recv", from);
  std::vector<std::byte> bytes(type.nbytes());
  ranks->receive(bytes.data(), bytes.size(), from);
  return from_bytes(bytes.data(), type);
}

}  // namespace reprise::dist
