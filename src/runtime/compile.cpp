#include "runtime/compile.h"

#include <cstdio>
#include <cstdlib>

#include "codegen/conv_rewrite.h"
#include "plan/expand.h"
#include "plan/keep.h"
#include "plan/keep_loops.h"
#include "plan/reduction.h"
#include "remat/open.h"
#include "runtime/assemble.h"
#include "runtime/epilogue.h"
#include "runtime/passes.h"
#include "runtime/relay.h"
#include "runtime/text.h"
#include "transform/cse.h"
#include "transform/dce.h"
#include "transform/inline.h"
#include "transform/simplify.h"

namespace reprise {
namespace {

std::string spill_directory(const CompileOptions& options) {
  if (!options.spill_directory.empty()) return options.spill_directory;
  const char* named = std::getenv("REPRISE_SPILL_DIR");
  return named == nullptr ? "" : named;
}

}  // namespace

ProgramPtr lowered(const Program& source) {
  Program p = apply_pass("inline", inline_calls, source);
  p = apply_pass("open_mergeable", open_mergeable_checkpoints, std::move(p));
  p = apply_pass("simplify", simplify, std::move(p));
  p = apply_pass("cse", cse, std::move(p));
  p = apply_pass("open", open_checkpoints, std::move(p));
  p = apply_pass("dce", drop_dead, std::move(p));
  p = apply_pass("split_reductions", plan::split_reductions, std::move(p));
  p = apply_pass("keep_loops", plan::keep_loops, std::move(p));
  p = apply_pass("keep", plan::keep, std::move(p));
  p = apply_pass("expand", plan::expand, std::move(p));
  p = apply_pass("convolutions", codegen::rewrite_convolutions, std::move(p));
  return std::make_shared<const Program>(std::move(p));
}

std::shared_ptr<const Executable> compile(const Program& source, const CompileOptions& options) {
  const std::string directory = spill_directory(options);
  const ProgramPtr program = lowered(source);
  std::shared_ptr<const plan::Schedule> schedule;
  {
    const PassTimer timer("schedule");
    schedule = std::make_shared<const plan::Schedule>(plan::make_schedule(program, {.fuse = !pass_is_disabled("fuse")}));
  }
  if (!pass_is_disabled("epilogue")) {
    const PassTimer timer("epilogue");
    schedule = std::make_shared<const plan::Schedule>(with_epilogues(*schedule));
  }
  const AssembleOptions assembling{.in_place = !pass_is_disabled("in_place"), .host_on_disk = !directory.empty(), .donated = options.donated};
  std::shared_ptr<const Code> code;
  {
    const PassTimer timer("assemble");
    code = assemble(schedule, assembling);
  }
  if (options.relays && !pass_is_disabled("relay")) {
    const PassTimer timer("relay");
    const auto relayed = with_relays(schedule);
    const auto joined = relayed == schedule ? code : assemble(relayed, assembling);
    if (joined->memory.peak() <= code->memory.peak()) code = joined;  // what a relay uses lives as long as the relay
  }
  if (pass_is_dumped("assemble")) std::fprintf(stderr, "reprise: after assemble\n%s\n", to_text(*code).c_str());
  return std::make_shared<const Executable>(std::move(code), directory);
}

}  // namespace reprise
