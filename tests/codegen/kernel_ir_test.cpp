// Kernels as LLVM's language: well formed, and no machine's own.
#include "codegen/kernel_ir.h"

#include "codegen/equation_code.h"
#include "codegen/other_machine.h"
#include "codegen/tile_ir.h"
#include "plan/schedule.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

namespace rp = reprise;
namespace lax = reprise::lax;
using rp::Array;
using namespace rp::codegen;

namespace {

// Kernels of every kind: elementwise, reductions along and over rows, turned tiles, several
// results.
rp::plan::Schedule schedule_of_kernels() {
  const auto loss = [](Array x, Array bias) {
    const Array shares = rp::nn::softmax(rp::transpose(x) * 2.0f, -1);
    const Array normed = (x - rp::mean(x, -1, true)) / rp::sqrt(rp::var(x, -1, true) + 1e-6f);
    return rp::sum(rp::sin(shares)) + rp::sum(rp::tanh(normed + bias)) +
           rp::sum(rp::exp(rp::transpose(x)) * bias);
  };
  const auto traced =
      rp::make_jaxpr(rp::value_and_grad<0, 1>(loss))(rp::ones({100, 100}), rp::ones({100}));
  return rp::plan::make_schedule(rp::lowered(*traced.program()), {});
}

// Equations with code of their own: cumulative operations along rows short and long and along
// columns, sorts by networks and by digits, with one operand and several.
rp::plan::Schedule schedule_of_equations() {
  const auto all = [](Array x, Array y) {
    const Array sums = rp::cumsum(x, 1) + rp::cumsum(x, 0),
                last = lax::cummax(y.reshape({4, 2500}), 1, true);
    const rp::Arrays by_two = lax::sort({x, rp::sin(x), rp::cos(x)}, 1, 2),
                     flat = lax::sort({y, rp::sin(y)}, 0, 1);
    return std::vector<Array>{sums,      last,   lax::sort({x}, 0)[0], lax::sort({y}, 0)[0],
                              by_two[2], flat[1]};
  };
  const auto traced = rp::make_jaxpr(all)(rp::ones({100, 50}), rp::ones({10000}));
  return rp::plan::make_schedule(rp::lowered(*traced.program()), {});
}
int emit_equations(llvm::Module& module, const VectorTarget& target) {
  static const rp::plan::Schedule schedule = schedule_of_equations();
  int number = 0;
  for (const rp::plan::Step& step : schedule.steps) {
    const auto* e = std::get_if<rp::plan::EvalStep>(&step.what);
    if (e == nullptr) continue;
    EquationKernel k{e->eqn, {}, {}};
    for (const rp::Atom& a : e->eqn->in) k.in.push_back(schedule.program->type(a));
    for (rp::Var v : e->eqn->out) k.out.push_back(schedule.program->type(v));
    REQUIRE(has_code(k));
    emit_equation(module, "equation" + std::to_string(number++), k, target);
  }
  return number;
}

std::unique_ptr<llvm::Module> emit_all(llvm::LLVMContext& context, const VectorTarget& target) {
  static const rp::plan::Schedule schedule = schedule_of_kernels();
  auto module = std::make_unique<llvm::Module>("kernels", context);
  const unsigned lanes = target.vector_bytes / 4;
  int number = 0;
  for (const rp::plan::Step& step : schedule.steps) {
    if (const auto* k = std::get_if<rp::plan::Kernel>(&step.what)) {
      emit_kernel(*module, "kernel" + std::to_string(number++), *k, rp::plan::loops_of(*k, lanes),
                  lanes, target);
    }
  }
  for (const rp::Dtype d : {rp::float32, rp::float64}) {
    const std::string name(rp::short_name(d));
    for (const Strip strip : {Strip::by_rows, Strip::by_columns}) {
      emit_tile(*module, "tile_" + name + (strip == Strip::by_rows ? "_rows" : "_columns"), d,
                strip, tile_rows(target), target);
    }
    emit_copy(*module, "copy_" + name, d, tile_rows(target), target);
    for (const Addend addend : {Addend::rows, Addend::numbers}) {
      emit_add(*module, "add_" + name + (addend == Addend::rows ? "_rows" : "_numbers"), d, addend,
               target);
    }
    emit_transpose(*module, "transpose_" + name, d, target);
    emit_search(*module, "search_" + name, d, target);
  }
  CHECK(number > 4);
  CHECK(emit_equations(*module, target) == 7);
  return module;
}

}  // namespace

TEST_CASE("kernels are well formed for every width of vectors") {
  for (const unsigned bytes : {16u, 32u, 64u}) {
    llvm::LLVMContext context;
    CHECK_FALSE(llvm::verifyModule(*emit_all(context, {.vector_bytes = bytes, .libmvec = false})));
  }
}

TEST_CASE("the same kernels compile for aarch64") {
  llvm::LLVMContext context;
  const auto module = emit_all(context, {.vector_bytes = 16, .libmvec = false});
  const auto bytes = aarch64_object_size(*module);
  if (bytes) CHECK(*bytes > 10'000);
}
