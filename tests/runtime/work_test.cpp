// Compile time is proportional to the program. Counted, not timed: every equation that a pass looks
// at, every operation that code is made for.
#include "base/work.h"

#include "../../bench/program_shapes.h"
#include "plan/place_buffers.h"
#include "runtime/compile.h"

#include <doctest/doctest.h>

namespace reprise {
namespace {

std::size_t equations(const Program& p) {
  std::size_t n = p.eqns.size();
  for (const Equation& e : p.eqns) {
    for_each_program(e.params, [&](const ProgramPtr& body) { n += equations(*body); });
  }
  return n;
}

// For each equation of the program, those inside others included.
double work_per_equation(const shapes::ProgramShape& shape, int n) {
  const std::uint64_t before = work_done;
  const Traced traced =
      trace([&](const Arrays& x) { return shape.function(x, n); }, shape.arguments(n));
  compile(*traced.program);
  return static_cast<double>(work_done - before) / static_cast<double>(equations(*traced.program));
}

const shapes::ProgramShape& shape_of(const std::vector<shapes::ProgramShape>& all,
                                     std::string_view name) {
  for (const auto& shape : all) {
    if (name == shape.name) return shape;
  }
  FAIL("no such shape: ", name);
  return all[0];
}

// From n to 2 n to 4 n.
void check_linear(std::string_view name, int n, double growth = 1.1) {
  CAPTURE(name);
  const auto all = shapes::all();
  const auto& shape = shape_of(all, name);
  const double once = work_per_equation(shape, n), twice = work_per_equation(shape, 2 * n);
  const double four_times = work_per_equation(shape, 4 * n);
  CHECK(twice <= growth * once);
  CHECK(four_times <= growth * twice);
}

}  // namespace

TEST_CASE("chains are compiled in proportion to their length") {
  check_linear("elementwise", 1500);
  check_linear("sine_gradient", 1000);
  check_linear("products", 500);
  check_linear("deep", 1000);
}

TEST_CASE("many values side by side are compiled in proportion to their number") {
  for (const char* name : {"wide", "wide_products", "outputs", "readers", "reader_gradient"})
    check_linear(name, 1000);
}

TEST_CASE("conditions inside conditions do not double the work") {
  for (const char* name : {"cond", "cond_gradient"}) check_linear(name, 16);
}

TEST_CASE("loops inside loops do not double the work") {
  check_linear("scan", 4);
  // Each level's constants are hoisted through the levels above it: not linear, far from doubling
  // per level.
  check_linear("scan_gradient", 4, 1.5);
}

TEST_CASE("checkpoints inside checkpoints do not add up") {
  for (const char* name : {"checkpoint", "checkpoint_gradient"}) check_linear(name, 100);
}

}  // namespace reprise
