#include "codegen/cores.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace reprise::codegen {
namespace {

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
  return cores;
}
cpu_set_t one_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  return cores;
}

// On a thread of its own, whose cores are its own business.
template <class Work>
void on_a_thread(const Work& work) {
  std::thread(work).join();
}

TEST_CASE("a thread on its caller's core goes elsewhere, if there is another") {
  on_a_thread([] {
    const cpu_set_t all = cores_of_this_thread();
    Placement place;
    place.begin();
    const int here = current_core();
    REQUIRE(here >= 0);
    const cpu_set_t only = one_core(here);
    REQUIRE(sched_setaffinity(0, sizeof only, &only) == 0);
    place.leave(here);
    const cpu_set_t now = cores_of_this_thread();
    if (CPU_COUNT(&all) > 1) {
      CHECK_FALSE(CPU_ISSET(here, &now));
      CHECK(CPU_COUNT(&now) == CPU_COUNT(&all) - 1);
      CHECK(current_core() != here);
    } else {
      CHECK(CPU_ISSET(here, &now));
    }
  });
}

TEST_CASE("a thread that is elsewhere stays as it is") {
  on_a_thread([] {
    const cpu_set_t all = cores_of_this_thread();
    Placement place;
    place.begin();
    place.leave(-1);
    place.leave(CPU_SETSIZE - 1);
    place.go_home();
    const cpu_set_t now = cores_of_this_thread();
    CHECK(CPU_EQUAL(&now, &all));
  });
}

TEST_CASE("a fetched thread runs where it is wanted and may go everywhere afterwards") {
  on_a_thread([] {
    const cpu_set_t all = cores_of_this_thread();
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      Placement place;
      place.begin();
      place.fetch(core);
      const cpu_set_t there = cores_of_this_thread(), wanted = one_core(core);
      CHECK(CPU_EQUAL(&there, CPU_ISSET(core, &all) ? &wanted : &all));
      place.go_home();
      const cpu_set_t now = cores_of_this_thread();
      CHECK(CPU_EQUAL(&now, &all));
    }
  });
}

TEST_CASE("a thread that sleeps was held up, one that has not begun was not") {
  Placement place;
  CHECK_FALSE(place.was_held_up());
  std::atomic<bool> has_begun{false}, is_over{false};
  std::thread sleeper([&] {
    place.begin();
    has_begun = true;
    while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!has_begun) std::this_thread::yield();
  place.was_held_up();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(place.was_held_up());
  is_over = true;
  sleeper.join();
}

}  // namespace
}  // namespace reprise::codegen
