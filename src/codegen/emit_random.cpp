// Threefry-2x32 with 20 rounds, for as many positions at once as a vector has lanes.
#include "codegen/emit_rules.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

V threefry_bits(const Emission& m) {
  const auto word = [&](std::uint32_t n) { return number(m, n); };
  const auto rotated = [&](V x, std::uint32_t turn) {
    return m.b.CreateIntrinsic(llvm::Intrinsic::fshl, {x->getType()}, {x, x, word(turn)});
  };
  const V k2 = m.b.CreateXor(m.b.CreateXor(m.x[0], m.x[1]), word(0x1BD11BDAu));
  const V keys[3] = {m.x[0], m.x[1], k2};
  V a = keys[0], b = m.b.CreateAdd(m.x[2], keys[1]);  // the counter's high word is 0
  constexpr std::uint32_t turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (const std::uint32_t turn : turns[group % 2]) {
      a = m.b.CreateAdd(a, b);
      b = m.b.CreateXor(rotated(b, turn), a);
    }
    a = m.b.CreateAdd(a, keys[(group + 1) % 3]);
    b = m.b.CreateAdd(m.b.CreateAdd(b, keys[(group + 2) % 3]), word(group + 1));
  }
  return m.b.CreateXor(a, b);
}

}  // namespace

std::span<const RuleRow> random_rules() {
  static constexpr RuleRow rows[] = {{&threefry_bits_p, threefry_bits}};
  return rows;
}

}  // namespace reprise::codegen
