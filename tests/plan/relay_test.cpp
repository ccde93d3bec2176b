#include "plan/relay.h"

#include "plan/check_memory.h"
#include "runtime/compile.h"
#include "with_threads.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
namespace plan = reprise::plan;

TEST_CASE("slices of loops keep to blocks where the outermost strides step from block to block") {
  // 4 x 8 matrices of 16 x 3, dense: by all 32 of them, by 4, and by rows of them.
  const rp::Ints sizes{4, 8, 16, 3}, dense{384, 48, 3, 1};
  CHECK(plan::keeps_to_slices(sizes, dense, 0, 32, 48));
  CHECK(plan::keeps_to_slices(sizes, dense, 0, 4, 384));
  CHECK(plan::keeps_to_slices(sizes, dense, 0, 64, 24));
  CHECK(plan::keeps_to_slices(sizes, dense, 0, 1, 1536));
  CHECK(plan::keeps_to_slices(sizes, {384, 48, 1, 16}, 0, 32, 48));  // each matrix transposed
  CHECK(plan::keeps_to_slices(sizes, {384, 48, 0, 1}, 45, 32, 48));  // its last row, broadcast

  CHECK_FALSE(plan::keeps_to_slices(sizes, dense, 1, 32, 48));  // one element beyond
  CHECK_FALSE(plan::keeps_to_slices(sizes, dense, -1, 32, 48));
  // matrices in another order
  CHECK_FALSE(plan::keeps_to_slices(sizes, {48, 192, 3, 1}, 0, 32, 48));
  // the same ones for each of the first four
  CHECK_FALSE(plan::keeps_to_slices(sizes, {0, 48, 3, 1}, 0, 32, 48));
  CHECK_FALSE(plan::keeps_to_slices(sizes, {384, 3, 24, 1}, 0, 32, 48));  // heads in rows
  CHECK_FALSE(plan::keeps_to_slices({4, 8, 16, 3}, {384, 48, -3, 1}, 45, 32, 48));
  // no whole number of loops
  CHECK_FALSE(plan::keeps_to_slices(sizes, dense, 0, 5, 300));
  CHECK_FALSE(plan::keeps_to_slices({4, 8, 0, 3}, dense, 0, 32, 48));  // nothing
  // more slices than elements
  CHECK_FALSE(plan::keeps_to_slices({4}, {1}, 0, 8, 1));
}

TEST_CASE("loops that were merged or are 1 long are cut as the whole") {
  CHECK(plan::keeps_to_slices({512, 3}, {3, 1}, 0, 32, 48));
  CHECK(plan::keeps_to_slices({1536}, {1}, 0, 32, 48));
  CHECK(plan::keeps_to_slices({1, 32, 1, 48}, {7, 48, 9, 1}, 0, 32, 48));
  CHECK_FALSE(plan::keeps_to_slices({1536}, {2}, 0, 32, 48));
}

TEST_CASE("values that a slice passes on share a thread's memory without touching each other") {
  const auto attention = [](rp::Array q, rp::Array k, rp::Array v) {
    const rp::Array scores = rp::einsum("bhqd,bhkd->bhqk", q, k);
    return rp::sum(rp::einsum("bhqk,bhkd->bhqd", rp::nn::softmax(scores, -1), v));
  };
  const rp::Array x = rp::ones({2, 4, 64, 32});
  const WithThreads two(2);  // few: each has a slice, which pays only where slices are more
  const auto executable =
      rp::compile(*rp::make_jaxpr(rp::grad<0, 1, 2>(attention))(x, x, x).program());
  const plan::Schedule& s = *executable->code().schedule;
  CHECK_FALSE(plan::overlap_in(s, executable->code().memory));
  int relays = 0;
  for (const plan::Step& step : s.steps) {
    const auto* relay = std::get_if<plan::RelayStep>(&step.what);
    if (relay == nullptr) continue;
    ++relays;
    const plan::SliceSchedule slice = plan::slice_schedule(s, *relay);
    plan::MemoryRequest request;
    request.outputs_given = true;
    request.scratch_bytes.assign(relay->steps.size(), 64);
    request.host_scratch_bytes.assign(relay->steps.size(), 0);
    plan::MemoryPlan memory = plan::plan_memory(slice.schedule, request);
    CHECK_FALSE(plan::overlap_in(slice.schedule, memory));
    std::size_t whole = 0;
    for (rp::Var v : relay->passed) {
      whole += s.types[static_cast<std::size_t>(v)].nbytes();
      CHECK(executable->code().memory.places[static_cast<std::size_t>(v)].region ==
            plan::Region::none);
    }
    CHECK(whole > 0);
    CHECK(memory.arena_bytes <= whole / static_cast<std::size_t>(relay->slices) + 64);
    memory.arena_bytes -= plan::memory_alignment;
    CHECK(plan::overlap_in(slice.schedule, memory));  // it is as small as can be
  }
  CHECK(relays >= 1);
}
