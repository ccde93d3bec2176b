// Vector code of one elementwise primitive.
//
//   values of `lanes` elements, one per operand   =>   the value of the result
//
// Representation in registers: f32, f64 and integers as vectors of themselves; bool as <lanes x
// i1>; f16 and bf16 as float vectors that hold half-precision numbers exactly (rounded after every
// operation), so that fusing never changes a bit.
//
// The code computes what the primitive's eval() computes: without contraction or reassociation,
// with the same treatment of NaN, signed zeros, division by zero and shifts that are too long.
// Integers, comparisons, selections, conversions, + - * / sqrt rsqrt rem floor ceil round,
// erf_inv and tanh of f32 give the same bits (NaNs of arithmetic may differ in sign and payload). The other
// functions:
//
//   exp, sin, cos  of f32 are code of our own where the target has fma, 2 ulp (emit_exp.cpp,
//                  emit_trig.cpp)
//   libmvec        vector functions of glibc, at most 4 ulp from eval() (measured: see
//                  tests/codegen/emit_ops_test.cpp), always of the machine's full width: the value
//                  of an element does not depend on `lanes`, nor on the lane
//   no libmvec     the scalar function of libm for every other, lane by lane, the same bits as eval()
//
// In half precision, one unit in the last place. Code runs in the default floating-point
// environment (round to nearest, subnormal numbers kept). Symbols to call are listed by
// runtime_symbols().
#pragma once

#include "plan/vector_code.h"

#include <span>

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace reprise::codegen {

// What the code may assume of the machine it is made for. The caller's target machine must have the
// features: other than that the code is the same for every architecture.
struct VectorTarget {
  unsigned vector_bytes = 64;  // 64: x86-64-v4 (AVX-512), 32: x86-64-v3 (AVX2, FMA, F16C), 16: any
  bool libmvec = true;         // glibc's vector functions can be called: has_libmvec()
  bool fma = true;             // multiplies and adds in one instruction
};

// An elementwise primitive has code: a row in one of the tables, or lanes in its record.
bool has_vector_code(const Primitive&);

class OpEmitter {
 public:
  // Code goes to the builder's insertion point, which may end up in a new block. `lanes`: a power
  // of two.
  OpEmitter(llvm::IRBuilderBase& builder, unsigned lanes, const VectorTarget& target);

  llvm::Type* vector_type(Dtype);   // in registers
  llvm::Type* element_type(Dtype);  // in memory: bool is i8, f16 and bf16 are i16
  llvm::Value* splat(const Literal&, Dtype);
  // Between memory and registers; `elements` is a vector of element_type(d). No bit is lost.
  llvm::Value* from_memory(llvm::Value* elements, Dtype d);
  llvm::Value* to_memory(llvm::Value* value, Dtype d);
  // A float vector to the nearest half-precision numbers; values of other dtypes are unchanged.
  llvm::Value* rounded(llvm::Value* value, Dtype d);

  // Needs has_vector_code(*e.prim) and plan::has_vector_code(e, in, out).
  llvm::Value* emit(const Equation& e, std::span<llvm::Value* const> operands,
                    std::span<const Type> in, const Type& out);

 private:
  llvm::IRBuilderBase& b_;
  unsigned lanes_;
  VectorTarget target_;
};

}  // namespace reprise::codegen
