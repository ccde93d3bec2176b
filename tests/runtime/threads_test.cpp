#include "runtime/threads.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace reprise {
namespace {

// Sets the number of threads for one test.
struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

TEST_CASE("parallel_for visits every item once") {
  for (const int threads : {1, 2, 5}) {
    const Threads set(threads);
    CHECK(num_threads() == threads);
    for (const std::int64_t n : {0, 1, 2, 7, 100, 10007}) {
      std::vector<int> visits(static_cast<std::size_t>(n));  // plain: two visits would race
      auto body = [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; };
      parallel_for(n, body);
      CHECK(std::accumulate(visits.begin(), visits.end(), 0) == n);
      for (const int v : visits) REQUIRE(v == 1);
    }
  }
}

TEST_CASE("what is written inside is seen after and before") {
  const Threads set(4);
  std::vector<double> x(1000);
  for (int round = 0; round < 50; ++round) {
    auto body = [&](std::int64_t i) { x[static_cast<std::size_t>(i)] += 1; };
    parallel_for(1000, body);
    x[0] += 1;
  }
  CHECK(x[0] == 100);
  CHECK(x[999] == 50);
}

TEST_CASE("a negative count is an empty loop") {
  int calls = 0;
  auto body = [&](std::int64_t) { ++calls; };
  parallel_for(-3, body);
  CHECK(calls == 0);
}

TEST_CASE("a loop inside a loop runs on its thread") {
  const Threads set(3);
  std::atomic<int> strangers{0}, inner_calls{0};
  auto outer = [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    auto inner = [&](std::int64_t) {
      ++inner_calls;
      if (std::this_thread::get_id() != self) ++strangers;
    };
    parallel_for(10, inner);
  };
  parallel_for(8, outer);
  CHECK(inner_calls == 80);
  CHECK(strangers == 0);
}

TEST_CASE("numbers of threads are brought into range") {
  const Threads keep(2);
  set_num_threads(0);
  CHECK(num_threads() == 1);
  set_num_threads(-5);
  CHECK(num_threads() == 1);
  set_num_threads(1 << 30);
  CHECK(num_threads() == 1024);
}

TEST_CASE("many threads of the user call at once") {
  const Threads set(3);
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 6; ++u) {
    users.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        auto body = [&](std::int64_t i) { total += i; };
        parallel_for(100, body);
      }
    });
  }
  for (std::thread& t : users) t.join();
  CHECK(total == 6 * 20 * 4950);
}

#if !defined( \
    __SANITIZE_THREAD__)  // the thread sanitizer does not follow forks of threaded programs
TEST_CASE("the child of a fork goes on alone, and its new threads together") {
  const Threads set(3);
  std::atomic<std::int64_t> total{0};
  auto body = [&](std::int64_t i) { total += i; };
  parallel_for(100, body);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // a hang ends the child
    total = 0;
    parallel_for(100, body);
    std::thread([&] { parallel_for(100, body); }).join();
    _exit(total == 2 * 4950 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

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
