// The programs of the benchmarks, smaller: what is computed again is what the forward pass
// computed.
#include "../../bench/workloads.h"

#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cstdio>

namespace {

struct CheckRecompute {
  template <class D, class F, class... A>
  void operator()(const std::string& workload, const std::string& mode, const D&, const F& loss,
                  const A&... args) const {
    INFO(workload, " ", mode);
    const reprise::RecomputeCheck check = reprise::check_recompute(loss, args...);
    std::printf("%-10s %-14s computed again %4zu, of those stored by the compiled program %4zu\n",
                workload.c_str(), mode.c_str(), check.compared, check.compared_compiled);
    CHECK_MESSAGE(check.ok, check.first_difference);
    if (mode != "none") CHECK(check.compared > 0);
  }
};

}  // namespace

TEST_CASE("every workload recomputes what it computed, bit for bit, evaluated and compiled") {
  bench::Sizes small;
  small.gpt = {.layers = 2, .width = 64, .heads = 4, .length = 32, .batch = 2, .vocabulary = 96};
  small.mlp_layers = 4;
  small.mlp_width = 128;
  small.mlp_batch = 32;
  small.chain_side = 64;
  small.scan_length = 64;
  small.scan_side = 24;
  small.deep = {128};
  const CheckRecompute check;
  for (const char* name : bench::workload_names) CHECK(bench::visit_workload(name, check, small));
}
