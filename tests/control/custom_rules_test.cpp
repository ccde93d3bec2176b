#include "reprise/nn_functions.h"
#include "reprise/reprise.h"

#include <doctest/doctest.h>

namespace reprise {
namespace {

TEST_CASE("a program read from text knows custom rules only by name") {
  const Array x = array({-1.0, 2.0});
  const Jaxpr program = make_jaxpr([](Array a) { return nn::relu(a); })(x);
  const Jaxpr parsed = parse_jaxpr(program.str());
  CHECK(parsed.str() == program.str());
  CHECK(parsed.eval({x})[0].to_vector<float>() == std::vector<float>{0, 2});
  const auto f = [&](Array a) { return parsed.eval({a})[0]; };
  CHECK_THROWS_AS(jvp(f, std::tuple{x}, std::tuple{x}), RuleError);
}

TEST_CASE("numbers in calls of library functions keep the precision of f64 operands") {
  const Array x = array(std::vector<double>{0.5, 2.0});
  const auto f = [](Array a) { return clip(a, std::nullopt, 1.1); };
  CHECK(f(x).to_vector<double>()[1] == 1.1);
  CHECK(make_jaxpr(f)(x).eval({x})[0].to_vector<double>()[1] == 1.1);
}

}  // namespace
}  // namespace reprise
