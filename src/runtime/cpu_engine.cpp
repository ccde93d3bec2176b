#include "runtime/cpu_engine.h"

#include "plan/cost.h"
#include "runtime/compile.h"
#include "runtime/eager.h"
#include "runtime/products.h"

namespace reprise {
namespace {

class CpuEngine final : public Engine {
 public:
  const char* name() const override { return "cpu"; }
  plan::Capabilities capabilities() const override { return cpu_capabilities(); }
  std::shared_ptr<const CompiledProgram> compile(const Program& p,
                                                 const CompileOptions& options) const override {
    return reprise::compile(p, options);
  }
  bool fits(const Program& p, const CompileOptions& options) const override {
    return reprise::fits(p, options);
  }
  std::vector<detail::CurveData> curve(const Program& p, const CompileOptions& options,
                                       int count) const override {
    std::vector<detail::CurveData> out;
    for (const BudgetPoint& point : curve_of(p, options, count)) {
      const PlannedProgram& planned = point.planned;
      const double flops = plan::cost_of(*planned.code->schedule->program).flops;
      out.push_back({planned.peak(), planned.seconds, flops});
    }
    return out;
  }
  Arrays evaluate(const Primitive& prim, const Arrays& x, const Params& params,
                  const Types& out) const override {
    return evaluate_eagerly(prim, x, params, out);
  }
  bool is_gone() const override { return codegen::compiler_is_gone(); }
};

}  // namespace

const Engine& cpu_engine() {
  static const Engine& engine = *new const CpuEngine;  // outlives whoever computes at exit
  return engine;
}

}  // namespace reprise
