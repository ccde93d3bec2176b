// How emit_ops.cpp finds the code of a primitive: one row per primitive, in the table of its
// family.
#pragma once

#include "codegen/emit_ops.h"
#include "program/primitive.h"

#include <string_view>

namespace reprise::codegen {

// One equation on its way to code.
struct Emission {
  OpEmitter& op;
  llvm::IRBuilderBase& b;
  const VectorTarget& target;
  unsigned lanes;
  const Equation& eqn;
  std::span<llvm::Value* const> x;
  std::span<const Type> in;
  Dtype out;

  Dtype dtype() const { return in[0].dtype; }
  bool floating() const { return is_floating(dtype()); }
  bool is_signed() const { return dtype() >= Dtype::i8 && dtype() <= Dtype::i64; }
};

// The dtype whose arithmetic is used: halves are computed in f32.
inline Dtype compute_dtype(Dtype d) { return d == Dtype::f16 || d == Dtype::bf16 ? Dtype::f32 : d; }

// What half-precision results need. `arithmetic`: a NaN is the machine's own or that of an operand,
// so that its low bits are 0 and rounding cannot make it another number. `exact`: nothing.
enum class Rounding : std::uint8_t { any, arithmetic, exact };

struct RuleRow {
  const Primitive* prim;
  llvm::Value* (*rule)(const Emission&);
  Rounding rounding = Rounding::any;
};

std::span<const RuleRow> arithmetic_rules();  // emit_arithmetic.cpp
std::span<const RuleRow> integer_rules();     // emit_integer.cpp
std::span<const RuleRow> choice_rules();      // emit_choice.cpp
std::span<const RuleRow> convert_rules();     // emit_convert.cpp
std::span<const RuleRow> math_rules();        // emit_math.cpp
std::span<const RuleRow> random_rules();      // emit_random.cpp

llvm::Value* rounded(const Emission&, llvm::Value* value, Rounding);

// The same number in every lane, in the registers of a dtype.
llvm::Value* number(const Emission&, double value, Dtype);
inline llvm::Value* number(const Emission& m, double value) { return number(m, value, m.dtype()); }

// x y + z of f32, rounded once. Without such an instruction the sum is rounded to f64 before, which
// changes less than one result in 10^8.
llvm::Value* multiply_add(const Emission&, llvm::Value* x, llvm::Value* y, llvm::Value* z);

// x / y and x rem y of integers, defined for every y (emit_integer.cpp).
llvm::Value* integer_quotient(const Emission&);
llvm::Value* integer_remainder(const Emission&);

// From one dtype to another, out of range saturates, NaN gives 0 (emit_convert.cpp).
llvm::Value* converted(const Emission&, llvm::Value* x, Dtype from, Dtype to);

// A function of libm, by the vector where the target has libmvec (emit_math.cpp).
llvm::Value* call_function(const Emission&, std::string_view name, std::span<llvm::Value* const> x);

// The function that a record with lanes stands for, likewise: the rule of those without a row.
llvm::Value* function_of_record(const Emission&);

// f32, or halves computed in it; the target multiplies and adds at once. May end in another block
// (emit_trig.cpp).
llvm::Value* sin_in_place(const Emission&);
llvm::Value* cos_in_place(const Emission&);
llvm::Value* exp_in_place(const Emission&, llvm::Value* x);  // in the same block (emit_exp.cpp)
llvm::Value* erf_inv_in_place(const Emission&);  // the same bits as inverse_erf (emit_erf_inv.cpp)
llvm::Value* tanh_in_place(const Emission&);     // of xla_tanh, on any target (emit_tanh.cpp)

// A runtime function on every lane ("fmod": lane_symbol(name, dtype)), by way of the stack.
llvm::Value* call_lanes(const Emission&, std::string_view name, Dtype,
                        std::span<llvm::Value* const> x);

}  // namespace reprise::codegen
