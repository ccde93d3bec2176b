// Kernels of equal keys share their code, so equal keys must mean equal kernels.
#include "plan/kernel.h"

#include "ops/records.h"

#include <doctest/doctest.h>

using namespace reprise;

namespace {

// x to a power, x being one of the earlier nodes.
std::string key_of_power(std::int64_t power, std::size_t operand) {
  Equation e;
  e.prim = &integer_pow_p;
  e.params = {{"y", power}};
  plan::Kernel k;
  k.domain = {64};
  plan::Node node;
  node.eqn = &e;
  node.in = {operand};
  k.nodes = {node};
  return plan::key_of(k);
}

}  // namespace

TEST_CASE("a number in the params does not run into the number of an operand") {
  CHECK(key_of_power(2, 22) != key_of_power(22, 2));
  CHECK(key_of_power(1, 11) != key_of_power(11, 1));
  CHECK(key_of_power(2, 2) == key_of_power(2, 2));
}
