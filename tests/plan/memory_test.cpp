#include "plan/memory.h"

#include "plan/check_memory.h"
#include "program/trace.h"
#include "random_program.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace rp = reprise;
namespace plan = reprise::plan;

namespace {

// The code and the bodies of its loops.
void collect(const rp::Code& code, std::vector<const rp::Code*>& out) {
  out.push_back(&code);
  for (const rp::Instruction& i : code.instructions) {
    if (const auto* s = std::get_if<rp::RunScan>(&i)) collect(*s->body, out);
    if (const auto* c = std::get_if<rp::RunCond>(&i)) {
      for (const auto& branch : c->branches) collect(*branch, out);
    }
  }
}

std::shared_ptr<const rp::Executable> gradient_of(std::uint64_t seed) {
  const auto program = random_program::make(seed);
  const auto traced = rp::make_jaxpr(rp::value_and_grad(program.loss))(program.args);
  return rp::compile(*traced.program());
}

}  // namespace

TEST_CASE("values that live at the same time never share a byte") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed ", seed);
    const auto executable = gradient_of(seed);
    std::vector<const rp::Code*> all;
    collect(executable->code(), all);
    for (const rp::Code* code : all) {
      const auto overlap = plan::overlap_in(*code->schedule, code->memory);
      CHECK_MESSAGE(!overlap, overlap.value_or(""));
      const auto misplaced = plan::misplaced_transfer(*code->schedule);
      CHECK_MESSAGE(!misplaced, misplaced.value_or(""));
      const auto lost = plan::lost_argument(*code->schedule, code->memory);
      CHECK_MESSAGE(!lost, lost.value_or(""));
    }
  }
}

TEST_CASE("donated arguments are taken over only when they are not needed any more") {
  std::size_t reused = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed ", seed);
    const auto program = random_program::make(seed);
    const auto traced = rp::make_jaxpr(rp::value_and_grad(program.loss))(program.args);
    const auto executable = rp::compile(
        *traced.program(), {.donated = std::vector<bool>(traced.program()->in.size(), true)});
    reused += executable->code().memory.reused.size();
    const auto lost = plan::lost_argument(*executable->code().schedule, executable->code().memory);
    CHECK_MESSAGE(!lost, lost.value_or(""));
  }
  CHECK(reused > 20);
}

TEST_CASE("the replay finds a plan that is one alignment unit too small") {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto executable = gradient_of(seed);
    const rp::Code& code = executable->code();
    if (code.memory.arena_bytes < 2 * plan::memory_alignment) continue;
    ++plans;
    plan::MemoryPlan shrunk = code.memory;
    shrunk.arena_bytes -= plan::memory_alignment;
    CHECK(plan::overlap_in(*code.schedule, shrunk));
  }
  CHECK(plans > 10);
}

namespace {

// The gradient of a chain of products that are offloaded.
rp::Array chain(rp::Array w, rp::Array x) {
  auto run = [w](rp::Array v) {
    for (int i = 0; i < 6; ++i) v = rp::tanh(rp::matmul(v, w));
    return v;
  };
  return rp::sum(
      rp::checkpoint(run, {.policy = rp::checkpoint_policies::offload_dot_with_no_batch_dims(
                               "device", "pinned_host")})(x));
}
std::shared_ptr<const rp::Executable> offloaded_chain() {
  const rp::Array w = rp::ones({64, 64}), x = rp::ones({256, 64});
  return rp::compile(*rp::make_jaxpr(rp::grad(chain))(w, x).program());
}
bool is(const plan::Step& step, plan::Transfer what) {
  const auto* t = std::get_if<plan::TransferStep>(&step.what);
  return t != nullptr && t->what == what;
}
std::size_t find(const plan::Schedule& s, plan::Transfer what, std::size_t from = 0) {
  while (from < s.steps.size() && !is(s.steps[from], what)) ++from;
  REQUIRE(from < s.steps.size());
  return from;
}

}  // namespace

TEST_CASE("transfers are drawn out over other steps, without more memory than at once") {
  const auto executable = offloaded_chain();
  const plan::Schedule& s = *executable->code().schedule;
  CHECK(!plan::overlap_in(s, executable->code().memory));
  CHECK(!plan::misplaced_transfer(s));
  const auto partner = [&](std::size_t i, plan::Transfer what) {
    for (std::size_t k = i + 1; k < s.steps.size(); ++k) {
      if (is(s.steps[k], what) && s.steps[k].operands == s.steps[i].operands &&
          s.steps[k].results == s.steps[i].results)
        return k;
    }
    return s.steps.size();
  };
  int writes = 0, reads = 0, drawn_out = 0;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (is(s.steps[i], plan::Transfer::begin_write)) {
      ++writes;
      drawn_out += partner(i, plan::Transfer::end_write) > i + 1;
    }
    if (is(s.steps[i], plan::Transfer::begin_read)) {
      ++reads;
      drawn_out += partner(i, plan::Transfer::end_read) > i + 1;
    }
  }
  CHECK(writes == 6);
  CHECK(reads >= 6);
  CHECK(drawn_out >= 8);
  // Drawn together again.
  plan::MemoryRequest request;
  request.scratch_bytes = executable->code().memory.scratch_bytes;
  request.host_scratch_bytes = executable->code().memory.host_scratch_bytes;
  plan::Schedule tight = s;
  tight.steps.clear();
  std::vector<std::size_t> scratch;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    const bool moved =
        is(s.steps[i], plan::Transfer::end_write) || is(s.steps[i], plan::Transfer::begin_read);
    if (moved) continue;
    const bool reads_back = is(s.steps[i], plan::Transfer::end_read);
    tight.steps.push_back(s.steps[i]);
    if (reads_back) tight.steps.back().what = plan::TransferStep{plan::Transfer::begin_read};
    scratch.push_back(request.scratch_bytes[i]);
    if (!reads_back && !is(s.steps[i], plan::Transfer::begin_write)) continue;
    tight.steps.push_back(s.steps[i]);
    tight.steps.back().what =
        plan::TransferStep{reads_back ? plan::Transfer::end_read : plan::Transfer::end_write};
    scratch.push_back(0);
  }
  request.scratch_bytes = scratch;
  const plan::MemoryPlan at_once = plan::plan_memory(tight, request);
  CHECK(!plan::misplaced_transfer(tight));
  CHECK(executable->code().memory.arena_bytes <= at_once.arena_bytes);
}

TEST_CASE("the replay finds transfers that are out of order") {
  const auto executable = offloaded_chain();
  const plan::Schedule& good = *executable->code().schedule;
  const auto problem = [&](const plan::Schedule& s) {
    return plan::misplaced_transfer(s).value_or("none");
  };
  CHECK(problem(good) == "none");

  plan::Schedule s = good;  // a value is read back before it is on the host
  const std::size_t read = find(s, plan::Transfer::begin_read);
  const plan::Step begun = s.steps[read];
  s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(read));
  s.steps.insert(s.steps.begin(), begun);
  CHECK(problem(s) == "step 0 reads back what is not on the host");

  s = good;  // an end without its begin
  s.steps.erase(s.steps.begin() +
                static_cast<std::ptrdiff_t>(find(s, plan::Transfer::begin_write)));
  CHECK(problem(s).find("ends a transfer that has not begun") != std::string::npos);

  s = good;  // a transfer that does not end
  s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(find(s, plan::Transfer::end_read)));
  CHECK(problem(s).find("is still under way") != std::string::npos);
  s = good;
  s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(find(s, plan::Transfer::end_write)));
  CHECK(problem(s) != "none");
}

TEST_CASE("the replay finds bytes of a transfer that someone else uses") {
  const auto executable = offloaded_chain();
  const plan::Schedule& s = *executable->code().schedule;
  plan::MemoryPlan shrunk = executable->code().memory;
  shrunk.host_bytes -= plan::memory_alignment;
  CHECK(plan::overlap_in(s, shrunk));

  plan::MemoryPlan moved = executable->code().memory;  // two values at one place on the host
  std::vector<plan::Place*> on_host;
  for (plan::Place& p : moved.places) {
    if (p.region == plan::Region::host) on_host.push_back(&p);
  }
  REQUIRE(on_host.size() == 6);
  *on_host[1] = *on_host[0];
  CHECK(plan::overlap_in(s, moved));

  // A plan for ends at once does not do for ends that come later.
  plan::Schedule early = s;
  const std::size_t begin = find(early, plan::Transfer::begin_write),
                    end = find(early, plan::Transfer::end_write);
  std::rotate(early.steps.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
              early.steps.begin() + static_cast<std::ptrdiff_t>(end),
              early.steps.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  plan::Schedule late = early;
  const plan::Step ends = late.steps[begin + 1];
  late.steps.erase(late.steps.begin() + static_cast<std::ptrdiff_t>(begin) + 1);
  late.steps.insert(
      late.steps.begin() + static_cast<std::ptrdiff_t>(find(late, plan::Transfer::begin_read)),
      ends);
  plan::MemoryRequest request;
  request.scratch_bytes.assign(s.steps.size(), 0);
  request.host_scratch_bytes.assign(s.steps.size(), 0);
  CHECK(!plan::overlap_in(early, plan::plan_memory(early, request)));
  CHECK(plan::overlap_in(late, plan::plan_memory(early, request)));
}

TEST_CASE("the replay finds an argument that is overwritten too early") {
  const rp::Array w = rp::ones({64, 64}), x = rp::ones({64, 64});
  const auto traced = rp::make_jaxpr(
      [](rp::Array a, rp::Array b) { return a - rp::matmul(rp::tanh(rp::matmul(b, a)), b); })(w, x);
  const auto executable = rp::compile(*traced.program(), {.donated = {true, false}});
  const plan::Schedule& s = *executable->code().schedule;
  const plan::MemoryPlan& good = executable->code().memory;
  CHECK(good.reused == std::vector<std::size_t>{0});
  CHECK(!plan::lost_argument(s, good));
  const auto result = static_cast<std::size_t>(s.outputs[0].root);
  CHECK(good.places[result].region == plan::Region::argument);

  plan::MemoryPlan other = good;  // an argument that was not donated
  other.places[result].offset = 1;
  CHECK(plan::lost_argument(s, other));
  plan::MemoryPlan early = good;  // a value that is made while the argument is still read
  REQUIRE(s.steps[0].writes.size() == 1);
  std::swap(early.places[result], early.places[static_cast<std::size_t>(s.steps[0].writes[0])]);
  CHECK(plan::lost_argument(s, early).value_or("").find("while it is needed") != std::string::npos);
}
