#include "runtime/threads.h"

#include "with_threads.h"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

namespace reprise {
namespace {

TEST_CASE("numbers of threads are brought into range") {
  const WithThreads keep(2);
  set_num_threads(0);
  CHECK(num_threads() == 1);
  set_num_threads(-5);
  CHECK(num_threads() == 1);
  set_num_threads(1 << 30);
  CHECK(num_threads() == 1024);
}

TEST_CASE("a team does every item once, whether its threads come or not") {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> seen(1000);
    auto work = [](void* data, Team& team) {
      auto& counts = *static_cast<std::vector<std::atomic<int>>*>(data);
      for (int round = 0; round < 200; ++round) {
        auto item = [&](std::int64_t i, std::int64_t thread) {
          counts[static_cast<std::size_t>(i)] += thread >= 0 && thread < 5 ? 1 : 1000;
        };
        team.share(round % 2 == 0 ? 1000 : round % 7, item);
        if (round == 150) team.dismiss();
      }
    };
    Team::gather(threads, &seen, work);
    for (std::size_t i = 7; i < seen.size(); ++i) CHECK(seen[i] == 100);
  }
}

}  // namespace
}  // namespace reprise
