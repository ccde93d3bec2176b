// Functions of libm, by the vector: glibc's libmvec where it exists, else lane by lane.
#include "codegen/emit_rules.h"
#include "codegen/runtime_symbols.h"
#include "ops/elementwise.h"
#include "ops/records.h"

#include <llvm/IR/CallingConv.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;
using Values = std::vector<V>;

llvm::Function* declare(const Emission& m, const std::string& name, llvm::FunctionType* type) {
  llvm::Module& module = *m.b.GetInsertBlock()->getModule();
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto* const function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  function->setDoesNotThrow();
  return function;
}

V lanes_in_order(const Emission& m, V x, unsigned first, unsigned count, unsigned period) {
  llvm::SmallVector<int, 64> lanes;
  for (unsigned i = first; i < first + count; ++i) lanes.push_back(static_cast<int>(i % period));
  return m.b.CreateShuffleVector(x, lanes);
}

// `width` lanes from `first` on; past the end it begins again, so that no lane is undefined.
V part(const Emission& m, V x, unsigned first, unsigned width) {
  return width == m.lanes ? x : lanes_in_order(m, x, first, width, m.lanes);
}
V joined(const Emission& m, Values parts, unsigned width) {  // a power of two of them
  for (; parts.size() > 1; width *= 2) {
    for (std::size_t i = 0; i < parts.size() / 2; ++i) {
      llvm::SmallVector<int, 64> lanes;
      for (unsigned k = 0; k < 2 * width; ++k) lanes.push_back(static_cast<int>(k));
      parts[i] = m.b.CreateShuffleVector(parts[2 * i], parts[2 * i + 1], lanes);
    }
    parts.resize(parts.size() / 2);
  }
  return width <= m.lanes ? parts[0] : lanes_in_order(m, parts[0], 0, m.lanes, width);
}

// On arm64 its functions keep more registers than others do.
#if defined(__aarch64__)
constexpr auto libmvec_convention = llvm::CallingConv::AArch64_VectorCall;
#else
constexpr auto libmvec_convention = llvm::CallingConv::C;
#endif

V call_libmvec(const Emission& m, std::string_view name, Dtype d, std::span<const V> x) {
  const auto width = static_cast<unsigned>(m.target.vector_bytes / itemsize(d));
  auto* const type = llvm::FixedVectorType::get(m.op.element_type(d), width);
  const llvm::SmallVector<llvm::Type*, 2> arguments(x.size(), type);
  llvm::Function* const function =
      declare(m, libmvec_symbol(name, d, x.size(), m.target.vector_bytes),
              llvm::FunctionType::get(type, arguments, /*isVarArg=*/false));
  function->setCallingConv(libmvec_convention);
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  Values parts;
  for (unsigned first = 0; first < m.lanes; first += width) {
    Values operands;
    for (const V operand : x) operands.push_back(part(m, operand, first, width));
    llvm::CallInst* const call = m.b.CreateCall(function, operands);
    call->setCallingConv(libmvec_convention);
    parts.push_back(call);
  }
  return joined(m, parts, width);
}

bool is_vector_function(const Emission& m, std::string_view name, Dtype d, std::size_t arity) {
  return m.target.libmvec && is_in_libmvec(libmvec_symbol(name, d, arity, m.target.vector_bytes));
}

// Calls void f(const T* x, ..., T* y, int64 lanes), by way of the stack.
template <class FunctionOf>
V over_lanes(const Emission& m, std::span<const V> x, const FunctionOf& function_of) {
  llvm::BasicBlock& entry = m.b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());  // a slot in a loop would grow the stack
  llvm::SmallVector<llvm::Type*, 4> types;
  Values arguments;
  for (const V operand : x) {
    const V slot = at_entry.CreateAlloca(operand->getType());
    m.b.CreateStore(operand, slot);
    arguments.push_back(slot);
  }
  const V result = arguments[0];
  arguments.push_back(result);
  arguments.push_back(m.b.getInt64(m.lanes));
  for (const V a : arguments) types.push_back(a->getType());
  m.b.CreateCall(function_of(llvm::FunctionType::get(m.b.getVoidTy(), types, /*isVarArg=*/false)),
                 arguments);
  return m.b.CreateLoad(x[0]->getType(), result);
}

template <Name name>
V function(const Emission& m) {
  return call_function(m, name.text, m.x);
}

bool in_place(const Emission& m) { return compute_dtype(m.dtype()) == Dtype::f32 && m.target.fma; }

// Far below the smallest subnormal the result is 0. libmvec leaves such lanes to the scalar
// function, one by one, and masked attention scores are full of them: they are taken out before.
V exp(const Emission& m, V x) {
  if (in_place(m)) return exp_in_place(m, x);
  const bool is_double = compute_dtype(m.dtype()) == Dtype::f64;
  const V vanishes = m.b.CreateFCmpOLT(x, number(m, is_double ? -746.0 : -104.0));
  const V zero = number(m, 0);
  const V in_range[] = {m.b.CreateSelect(vanishes, zero, x)};
  return m.b.CreateSelect(vanishes, zero, call_function(m, "exp", in_range));
}
V exp(const Emission& m) { return exp(m, m.x[0]); }

V logistic(const Emission& m) {
  const V one = number(m, 1);
  return m.b.CreateFDiv(one, m.b.CreateFAdd(one, exp(m, m.b.CreateFNeg(m.x[0]))));
}

V tanh(const Emission& m) {
  return compute_dtype(m.dtype()) == Dtype::f32 ? tanh_in_place(m) : function<"tanh">(m);
}
V sin(const Emission& m) { return in_place(m) ? sin_in_place(m) : function<"sin">(m); }
V cos(const Emission& m) { return in_place(m) ? cos_in_place(m) : function<"cos">(m); }
V erf_inv(const Emission& m) { return in_place(m) ? erf_inv_in_place(m) : function_of_record(m); }

V pow(const Emission& m) {  // a floating base may have an integer exponent
  const V x[] = {m.x[0], converted(m, m.x[1], m.in[1].dtype, m.dtype())};
  return m.floating() ? call_function(m, "pow", x) : call_lanes(m, "pow", m.dtype(), x);
}

}  // namespace

llvm::Value* call_function(const Emission& m, std::string_view name,
                           std::span<llvm::Value* const> x) {
  const Dtype d = compute_dtype(m.dtype());
  return is_vector_function(m, name, d, x.size()) ? call_libmvec(m, name, d, x)
                                                  : call_lanes(m, name, d, x);
}

llvm::Value* call_lanes(const Emission& m, std::string_view name, Dtype d,
                        std::span<llvm::Value* const> x) {
  return over_lanes(m, x, [&](llvm::FunctionType* type) {
    return llvm::FunctionCallee(declare(m, lane_symbol(name, d), type));
  });
}

llvm::Value* function_of_record(const Emission& m) {
  const Dtype d = compute_dtype(m.dtype());
  const Primitive& prim = *m.eqn.prim;
  if (is_vector_function(m, prim.name, d, 1)) return call_libmvec(m, prim.name, d, m.x);
  const auto address = d == Dtype::f64 ? reinterpret_cast<std::uintptr_t>(prim.lanes->f64)
                                       : reinterpret_cast<std::uintptr_t>(prim.lanes->f32);
  return over_lanes(m, m.x, [&](llvm::FunctionType* type) {
    const V pointer = m.b.CreateIntToPtr(m.b.getInt64(address), m.b.getPtrTy());
    return llvm::FunctionCallee(type, pointer);
  });
}

std::span<const RuleRow> math_rules() {
  // Others are called by their records.
  static constexpr RuleRow rows[] = {
      {&exp_p, exp},         {&sin_p, sin},           {&cos_p, cos}, {&tanh_p, tanh},
      {&erf_inv_p, erf_inv}, {&logistic_p, logistic}, {&pow_p, pow}, {&atan2_p, function<"atan2">}};
  return rows;
}

}  // namespace reprise::codegen
