// Generated vector code against the evaluator of every elementwise primitive, on special and random
// values, for every vector width that this machine has.
//
// Largest distances seen from the evaluator, which calls libm (but for tanh of f32, which is code of
// our own in both), in units in the last place (40
// million numbers for each function of f32 and 16 million of f64, glibc 2.36, all vector widths):
//
//   f32  4: erf log logistic tan   3: acosh asin asinh atan2 atanh cbrt erfc exp
//        2: acos atan cos (also in place) cosh expm1 log1p sin sinh   1: exp2 pow
//   f64  4: cbrt cos erfc logistic tan tanh   3: acosh asin asinh atan atanh erf exp expm1 sin sinh
//        2: acos atan2 cosh exp2 log log1p   1: pow
//   f16 and bf16  1: all of them
#include "codegen/emit_ops.h"

#include "codegen/element_values.h"
#include "codegen/other_machine.h"
#include "codegen/runtime_symbols.h"
#include "ops/device_put.h"
#include "ops/records.h"

#include <doctest/doctest.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <set>

using namespace reprise;
using codegen::OpEmitter;
using codegen::VectorTarget;

namespace {

constexpr Dtype all_dtypes[] = {Dtype::bool_, Dtype::u8,  Dtype::u16, Dtype::u32, Dtype::u64,
                                Dtype::i8,    Dtype::i16, Dtype::i32, Dtype::i64, Dtype::f16,
                                Dtype::bf16,  Dtype::f32, Dtype::f64};

// ------------------------------------------------------------------------------------------ cases
struct Case {
  Equation eqn;
  std::vector<Dtype> in;
  Dtype out;
  std::string text() const {
    std::string s = eqn.prim->name;
    for (const Param& p : eqn.params.items()) s += str(" ", p.key, "=", python_text(p.value));
    for (Dtype d : in) s += str(" ", d);
    return s;
  }
};

std::vector<Type> vectors(const std::vector<Dtype>& dtypes, std::int64_t n) {
  std::vector<Type> types;
  for (Dtype d : dtypes) types.push_back(Type{d, {n}});
  return types;
}

// The type rule says which dtypes a primitive takes.
void add_case(std::vector<Case>& cases, const Primitive& prim, const Params& params,
              const std::vector<Dtype>& in) {
  try {
    const Type out = prim.type(vectors(in, 64), params)[0];
    const Equation eqn{&prim, params, {}, {}, {}};
    if (plan::has_vector_code(eqn, vectors(in, 64), out)) cases.push_back({eqn, in, out.dtype});
  } catch (const TypeError&) {
  }
}

std::vector<Params> params_of(const Primitive& prim) {
  std::vector<Params> all;
  if (&prim == &round_p) {
    for (std::int64_t method : {0, 1}) all.push_back({{"rounding_method", method}});
  } else if (&prim == &integer_pow_p) {
    for (std::int64_t y : {-3, -1, 0, 1, 2, 3, 7, 10}) all.push_back({{"y", y}});
  } else if (&prim == &convert_element_type_p) {
    for (Dtype d : all_dtypes) all.push_back({{"new_dtype", d}, {"weak_type", false}});
  } else if (&prim == &bitcast_convert_type_p) {
    for (Dtype d : all_dtypes) all.push_back({{"new_dtype", d}});
  } else if (&prim == &reduce_precision_p) {
    for (const auto& [e, m] : {std::pair<std::int64_t, std::int64_t>{5, 10},
                               {8, 7},
                               {4, 3},
                               {1, 0},
                               {8, 23},
                               {11, 52},
                               {3, 30}}) {
      all.push_back({{"exponent_bits", e}, {"mantissa_bits", m}});
    }
  } else if (&prim == &device_put_p) {
    all.push_back(device_put_equation(Atom::of(0), 1, MemorySpace::host).params);
  } else if (&prim == &name_p) {
    all.push_back({{"name", std::string("x")}});
  } else {
    all.push_back({});
  }
  return all;
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const Primitive* prim : basic_primitives()) {
    if (prim->kind != Kind::elementwise && prim->kind != Kind::name && prim != &device_put_p)
      continue;
    for (const Params& params : params_of(*prim)) {
      for (Dtype d : all_dtypes) {
        if (prim != &select_n_p) {
          add_case(cases, *prim, params,
                   std::vector<Dtype>(static_cast<std::size_t>(prim->arity), d));
          continue;
        }
        add_case(cases, *prim, params, {Dtype::bool_, d});
        add_case(cases, *prim, params, {Dtype::bool_, d, d});
        add_case(cases, *prim, params, {Dtype::i32, d, d, d});
      }
    }
  }
  for (Dtype d : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    add_case(cases, pow_p, {}, {d, Dtype::i32});
  }
  return cases;
}
const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

// ------------------------------------------------------------------------------------------- code
struct Machine {
  const char* cpu;
  const char* needs;  // the feature that its other features come with; null: any arm64
  unsigned vector_bytes;
  bool fma;
};
constexpr Machine machines[] = {{"x86-64-v4", "avx512bw", 64, true},
                                {"x86-64-v3", "avx2", 32, true},
                                {"x86-64", "sse2", 16, false},
                                {"generic", nullptr, 16, true}};

bool runs_here(const Machine& machine) {
  const bool is_arm64 = llvm::Triple(llvm::sys::getProcessTriple()).isAArch64();
  if (is_arm64 || machine.needs == nullptr) return is_arm64 && machine.needs == nullptr;
  const auto features = llvm::sys::getHostCPUFeatures();
  return features.lookup(machine.needs);
}

// void kernel(const void* const* operands, void* out): all values, `lanes` at a time.
void emit_kernel(llvm::Module& module, const Case& c, const std::string& name, unsigned lanes,
                 const VectorTarget& target) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* const type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
  auto* const f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  auto* const entry = llvm::BasicBlock::Create(context, "entry", f);
  auto* const loop = llvm::BasicBlock::Create(context, "loop", f);
  auto* const done = llvm::BasicBlock::Create(context, "done", f);
  b.SetInsertPoint(entry);
  OpEmitter op(b, lanes, target);
  std::vector<llvm::Value*> bases;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    bases.push_back(
        b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(0), k)));
  }
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* const i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  std::vector<llvm::Value*> x;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    llvm::Type* const element = op.element_type(c.in[k]);
    auto* const memory = llvm::FixedVectorType::get(element, lanes);
    llvm::Value* const at = b.CreateGEP(element, bases[k], i);
    x.push_back(op.from_memory(b.CreateAlignedLoad(memory, at, llvm::Align(1)), c.in[k]));
  }
  llvm::Value* const y = op.emit(c.eqn, x, vectors(c.in, num_values), Type{c.out, {num_values}});
  llvm::Value* const to = b.CreateGEP(op.element_type(c.out), f->getArg(1), i);
  b.CreateAlignedStore(op.to_memory(y, c.out), to, llvm::Align(1));
  llvm::Value* const next = b.CreateAdd(i, b.getInt64(lanes));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(num_values)), loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

// kernel_0, kernel_1, ... in one module.
std::unique_ptr<llvm::Module> emit_all(llvm::LLVMContext& context, const std::vector<Case>& all,
                                       unsigned lanes, const VectorTarget& target) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  for (std::size_t i = 0; i < all.size(); ++i) {
    emit_kernel(*module, all[i], str("kernel_", i), lanes, target);
  }
  std::string problems;
  llvm::raw_string_ostream out(problems);
  REQUIRE_MESSAGE(!llvm::verifyModule(*module, &out), problems);
  return module;
}

std::unique_ptr<llvm::orc::LLJIT> make_jit(const Machine& machine) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::orc::JITTargetMachineBuilder builder((llvm::Triple(llvm::sys::getProcessTriple())));
  builder.setCPU(machine.cpu);
  // Only what runtime_symbols() lists can be called.
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder()
                                .setJITTargetMachineBuilder(builder)
                                .setLinkProcessSymbolsByDefault(false)
                                .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                                .create());
  llvm::orc::SymbolMap symbols;
  for (const auto& [name, address] : codegen::runtime_symbols()) {
    symbols[jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                           llvm::JITSymbolFlags::Exported};
  }
  llvm::cantFail(jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(symbols)));
  return jit;
}

// ------------------------------------------------------------------------------------- comparison
bool moves_bits(const Primitive& p) {
  return &p == &select_n_p || &p == &copy_p || &p == &stop_gradient_p || &p == &name_p ||
         &p == &device_put_p || &p == &bitcast_convert_type_p;
}
bool calls_libmvec(const Case& c) {
  static const std::set<const Primitive*> functions{
      &exp_p,   &exp2_p, &log_p,  &log1p_p, &expm1_p, &sin_p,   &cos_p,     &tan_p,
      &asin_p,  &acos_p, &atan_p, &sinh_p,  &cosh_p,  &tanh_p,  &asinh_p,   &acosh_p,
      &atanh_p, &cbrt_p, &erf_p,  &erfc_p,  &pow_p,   &atan2_p, &logistic_p};
  const bool is_ours = c.eqn.prim == &tanh_p && c.in[0] != Dtype::f64;
  return is_floating(c.in[0]) && functions.count(c.eqn.prim) != 0 && !is_ours;
}

void check_case(const Case& c, void (*kernel)(const void* const*, void*), bool vector_functions) {
  Arrays x;
  std::vector<const void*> data;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    x.push_back(operand(c.in[k], k, c.in.size()));
    data.push_back(content(x.back()).elements);
  }
  const Type type{c.out, {num_values}};
  const Array want = c.eqn.prim->eval(x, c.eqn.params, {type})[0];
  NewArray got(type);
  kernel(data.data(), got.bytes());
  const bool half = c.out == Dtype::f16 || c.out == Dtype::bf16;
  const double allowed = !calls_libmvec(c) || !vector_functions ? 0 : half ? 1 : 4;
  visit_dtype(c.out, [&](auto tag) {
    using T = decltype(tag);
    std::int64_t at = 0;
    const double found =
        largest_distance(got.data<T>(), elements<T>(want), moves_bits(*c.eqn.prim), &at);
    std::string operands;
    for (const Array& v : x) {
      visit_dtype(v.dtype(), [&](auto of) {
        operands += str(" ", +static_cast<Compute<decltype(of)>>(elements<decltype(of)>(v)[at]));
      });
    }
    CHECK_MESSAGE(found <= allowed, c.text(), ": ", found, " ulp at", operands, ", got ",
                  +static_cast<Compute<T>>(got.data<T>()[at]), ", evaluated ",
                  +static_cast<Compute<T>>(elements<T>(want)[at]));
  });
}

// Without vector functions: only what would call some.
void check_machine(const Machine& machine, unsigned lanes, bool vector_functions) {
  if (!runs_here(machine)) return;
  CAPTURE(machine.cpu);
  CAPTURE(lanes);
  CAPTURE(vector_functions);
  std::vector<Case> all = cases();
  if (!vector_functions) std::erase_if(all, [](const Case& c) { return !calls_libmvec(c); });
  const auto jit = make_jit(machine);
  auto context = std::make_unique<llvm::LLVMContext>();
  const VectorTarget target{machine.vector_bytes, vector_functions && codegen::has_libmvec(),
                            vector_functions && machine.fma};
  auto module = emit_all(*context, all, lanes, target);
  module->setDataLayout(jit->getDataLayout());
  llvm::cantFail(jit->addIRModule({std::move(module), std::move(context)}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto address = llvm::cantFail(jit->lookup(str("kernel_", i)));
    check_case(all[i], address.toPtr<void (*)(const void* const*, void*)>(), vector_functions);
  }
}

}  // namespace

TEST_CASE("every elementwise primitive has vector code for every dtype that its type rule takes") {
  std::set<std::string> covered;
  for (const Case& c : cases()) covered.insert(c.eqn.prim->name);
  for (const Primitive* prim : basic_primitives()) {
    if (prim->kind == Kind::elementwise) CHECK_MESSAGE(covered.count(prim->name) == 1, prim->name);
  }
  CHECK(cases().size() > 600);
}

TEST_CASE("only equations on numbers that keep the number of elements have vector code") {
  const Equation halves{&bitcast_convert_type_p, {{"new_dtype", Dtype::u16}}, {}, {}, {}};
  const Type words{Dtype::u32, {4}};
  CHECK_FALSE(plan::has_vector_code(halves, {{words}}, Type{Dtype::u16, {4, 2}}));
  const Equation add{&add_p, {}, {}, {}, {}}, reshape{&reshape_p, {}, {}, {}, {}};
  const Type nothing{Dtype::float0, {4}};
  CHECK(plan::has_vector_code(add, {{words, words}}, words));
  CHECK_FALSE(plan::has_vector_code(add, {{nothing, nothing}}, nothing));
  CHECK_FALSE(plan::has_vector_code(reshape, {{words}}, words));
}

TEST_CASE("code for AVX-512 computes what the evaluator computes") {
  check_machine(machines[0], 16, true);
}
TEST_CASE("code for AVX2 computes what the evaluator computes") {
  check_machine(machines[1], 16, true);
}
TEST_CASE("code for any x86-64 computes what the evaluator computes") {
  check_machine(machines[2], 16, true);
}
TEST_CASE("code for arm64 computes what the evaluator computes") {
  check_machine(machines[3], 16, true);
  check_machine(machines[3], 1, true);
}
TEST_CASE("code with fewer lanes than a register computes what the evaluator computes") {
  check_machine(machines[0], 4, true);
  check_machine(machines[1], 1, true);
}
TEST_CASE("code without libmvec computes exactly what the evaluator computes") {
  for (const Machine& machine : machines) check_machine(machine, 16, false);
}

TEST_CASE("the same code compiles for aarch64") {
  llvm::LLVMContext context;
  const auto module = emit_all(context, cases(), 16, {16, false});
  const auto bytes = aarch64_object_size(*module);
  if (bytes) CHECK(*bytes > 100'000);
}
