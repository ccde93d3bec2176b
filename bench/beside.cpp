// How much slower Reprise is while other processes want the cores; it starts them itself.
//   bench/beside [workload[:mode] ...]
//
// Columns: the median time of a call on a quiet machine, and its multiples beside one and three
// processes that only count, and beside a second copy of the same workload. `step` is a small mlp,
// some 2 ms.
#include "workloads.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

using namespace bench;
using Clock = std::chrono::steady_clock;

// Processes that end with this object, or with this process.
class Others {
 public:
  template <class Work>
  Others(int count, const Work& work) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work();
        _exit(1);
      }
      children_.push_back(child);
    }
  }
  ~Others() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

 private:
  std::vector<pid_t> children_;
};

void count_for_ever() {
  for (volatile unsigned n = 0;;) n = n + 1;
}

template <class Call>
double median_ms(const Call& call, double seconds) {
  std::vector<double> taken;
  const auto begin = Clock::now();
  while (taken.size() < 5 ||
         std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    const auto start = Clock::now();
    call();
    taken.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::nth_element(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2),
                   taken.end());
  return taken[taken.size() / 2];
}

struct Measure {
  const char* program;
  std::string item;         // as on the command line
  std::string wanted_mode;  // empty: the first
  bool is_copy;             // that runs for another measurement until it is killed
  mutable bool is_done = false;

  template <class F, class L, class... A>
  void operator()(const std::string& workload, const std::string& mode, const F& f, const L&,
                  const A&... args) const {
    if (is_done || (!wanted_mode.empty() && wanted_mode != mode)) return;
    is_done = true;
    const auto jitted = rp::jit(f);
    const auto call = [&] { const auto out = jitted(args...); };
    call();
    while (is_copy) call();
    constexpr double seconds = 2;
    const double quiet = median_ms(call, seconds);
    const auto beside = [&](int count) {
      const Others busy(count, count_for_ever);
      return median_ms(call, seconds);
    };
    const double one = beside(1), three = beside(3);
    const Others copy(1, [&] { execl(program, program, "--copy", item.c_str(), nullptr); });
    sleep(3);  // it compiles first
    const double itself = median_ms(call, seconds);
    std::printf("%-16s %10.2f ms %8.2f x %8.2f x %8.2f x\n", (workload + " " + mode).c_str(), quiet,
                one / quiet, three / quiet, itself / quiet);
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  const bool is_copy = !wanted.empty() && wanted[0] == "--copy";
  if (is_copy) wanted.erase(wanted.begin());
  if (wanted.empty()) wanted = {"gpt:nothing", "mlp:none", "scan1024:none", "step"};
  if (!is_copy)
    std::printf("%-16s %13s %10s %10s %10s\n", "", "quiet", "beside 1", "beside 3", "itself");
  for (const std::string& item : wanted) {
    const std::string name = item.substr(0, item.find(':'));
    const Measure measure{"/proc/self/exe", item,
                          item.size() > name.size() ? item.substr(name.size() + 1) : "", is_copy};
    Sizes sizes;
    if (name == "step") sizes.mlp_layers = 4, sizes.mlp_width = 384, sizes.mlp_batch = 128;
    if (!visit_workload(name == "step" ? "mlp" : name, measure, sizes)) {
      std::fprintf(stderr, "no workload %s\n", name.c_str());
      return 2;
    }
  }
}
