#include "plan/memory.h"

#include <doctest/doctest.h>
#include <reprise/reprise.h>

#include "plan/check_memory.h"
#include "program/trace.h"
#include "random_program.h"
#include "runtime/compile.h"

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
    }
  }
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
