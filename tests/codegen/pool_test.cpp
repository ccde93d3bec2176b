#include "codegen/pool.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace reprise::codegen {
namespace {

TEST_CASE("every item is visited once") {
  for (const int threads : {1, 2, 5, 64}) {
    for (const std::int64_t n : {-3, 0, 1, 2, 7, 100, 10007}) {
      // Plain numbers: two visits would race.
      std::vector<int> visits(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
      std::atomic<bool> numbers_fit{true};
      share_items(threads, n, [&](std::int64_t thread, std::int64_t i) {
        ++visits[static_cast<std::size_t>(i)];
        if (thread < 0 || thread >= threads) numbers_fit = false;
      });
      CHECK(numbers_fit);
      for (const int v : visits) REQUIRE(v == 1);
    }
  }
}

TEST_CASE("no two who work at once have the same number") {
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> at_work(4);
    std::atomic<bool> alone{true};
    share_items(4, 40, [&](std::int64_t thread, std::int64_t) {
      std::atomic<int>& own = at_work[static_cast<std::size_t>(thread)];
      if (own.fetch_add(1) != 0) alone = false;
      own.fetch_sub(1);
    });
    REQUIRE(alone);
  }
}

TEST_CASE("what is written inside is seen after and before") {
  std::vector<double> x(1000);
  for (int round = 0; round < 50; ++round) {
    share_items(4, 1000,
                [&](std::int64_t, std::int64_t i) { x[static_cast<std::size_t>(i)] += 1; });
    x[0] += 1;
  }
  CHECK(x[0] == 100);
  CHECK(x[999] == 50);
}

TEST_CASE("sharing inside sharing stays on its thread") {
  std::atomic<int> strangers{0}, inner_calls{0};
  share_items(3, 8, [&](std::int64_t, std::int64_t) {
    const auto self = std::this_thread::get_id();
    CHECK(team_size(3) == 1);
    share_items(3, 10, [&](std::int64_t, std::int64_t) {
      ++inner_calls;
      if (std::this_thread::get_id() != self) ++strangers;
    });
  });
  CHECK(inner_calls == 80);
  CHECK(strangers == 0);
  CHECK(team_size(3) == 3);
}

TEST_CASE("one part that fails makes the whole fail") {
  CHECK(share_parts(3, 20, [](std::int64_t, std::int64_t) { return true; }));
  CHECK_FALSE(share_parts(3, 20, [](std::int64_t, std::int64_t i) { return i != 13; }));
}

TEST_CASE("more threads of the user than places for offers call at once") {
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 40; ++u) {
    users.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        share_items(3, 100, [&](std::int64_t, std::int64_t i) { total += i; });
      }
    });
  }
  for (std::thread& t : users) t.join();
  CHECK(total == 40 * 50 * 4950);
}

TEST_CASE("help comes: two who wait for each other both get a thread") {
  std::atomic<int> here{0};
  run_together(2, &here, [](void* context, std::int64_t) {
    auto& count = *static_cast<std::atomic<int>*>(context);
    ++count;
    for (Patience patience; count < 2;) patience.wait();
  });
  CHECK(here == 2);
}

// Of all threads but this one.
int running_threads() {
  int running = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.substr(name_end + 2, 1) == "R") ++running;
  }
  return running;
}

TEST_CASE("who has nothing to do sleeps") {
  share_items(8, 1000, [](std::int64_t, std::int64_t) {});
  int looks = 0;
  while (running_threads() > 0 && ++looks < 500) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(looks < 500);
}

// the thread sanitizer does not follow forks of threaded programs
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("the child of a fork has threads of its own") {
  std::atomic<std::int64_t> total{0};
  const auto add = [&](std::int64_t, std::int64_t i) { total += i; };
  share_items(3, 100, add);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // a hang ends the child
    total = 0;
    share_items(3, 100, add);
    std::thread([&] { share_items(3, 100, add); }).join();
    std::atomic<int> here{0};
    run_together(2, &here, [](void* context, std::int64_t) {
      auto& count = *static_cast<std::atomic<int>*>(context);
      ++count;
      for (Patience patience; count < 2;) patience.wait();
    });
    _exit(total == 2 * 4950 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace reprise::codegen
