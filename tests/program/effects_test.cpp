// What each part of an effect forbids, by primitives that differ in nothing else.
#include "program/effects.h"

#include "program/trace.h"
#include "transform/cse.h"
#include "transform/dce.h"
#include "transform/partial_eval.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace reprise {
namespace {

Types same_type(const Types& in, const Params&) { return in; }
Arrays same_value(const Arrays& x, const Params&, const Types&) { return x; }

constexpr Primitive plain_p{
    .name = "plain", .kind = Kind::effect, .type = same_type, .eval = same_value};
constexpr Primitive once_p{.name = "once",
                           .kind = Kind::effect,
                           .type = same_type,
                           .eval = same_value,
                           .effect = {.is_once = true}};
constexpr Primitive distinct_p{.name = "distinct",
                               .kind = Kind::effect,
                               .type = same_type,
                               .eval = same_value,
                               .effect = {.is_distinct = true}};
constexpr Primitive kept_p{.name = "kept",
                           .kind = Kind::effect,
                           .type = same_type,
                           .eval = same_value,
                           .effect = {.is_kept = true}};

const Type f32{Dtype::f32, {}};
Program twice(const Primitive& p, bool is_read) {
  return *trace(
              [&](const Arrays& x) {
                const Array a = p.bind1({x[0]});
                const Array b = p.bind1({x[0]});
                return is_read ? Arrays{a, b} : Arrays{x[0]};
              },
              {f32})
              .program;
}

TEST_CASE("an equation has the effects of the programs inside it") {
  CHECK(!effects_of(twice(plain_p, true)).is_any());
  const Program inside = twice(kept_p, true);
  Equation call;
  call.prim = &plain_p;
  call.params = Params{{"jaxpr", std::make_shared<const Program>(inside)}};
  CHECK(effect_of(call).is_kept);
  CHECK(!effect_of(call).is_once);
  CHECK(does_something(call));
}

TEST_CASE("what is not read is dropped, unless it is kept") {
  CHECK(drop_dead(twice(plain_p, false)).eqns.empty());
  CHECK(drop_dead(twice(once_p, false)).eqns.empty());
  CHECK(drop_dead(twice(kept_p, false)).eqns.size() == 2);
}

TEST_CASE("equal equations are merged, unless they are distinct") {
  CHECK(cse(twice(plain_p, true)).eqns.size() == 1);
  CHECK(cse(twice(kept_p, true)).eqns.size() == 1);
  CHECK(cse(twice(distinct_p, true)).eqns.size() == 2);
}

TEST_CASE("what the policy does not save is computed again, unless that may happen once only") {
  const SplitPolicy nothing{
      [](const Program&, const Equation&, const OutputNames&) { return SplitDecision(Repeat{}); },
      "nothing"};
  const auto staged = [&](const Primitive& p) {
    const Program program = *trace(
                                 [&](const Arrays& x) {
                                   const Array y = p.bind1({x[0]});
                                   return Arrays{lax::mul(y, x[1])};
                                 },
                                 {f32, f32})
                                 .program;
    return split(program, {false, true}, {true, true}, nothing, SplitMode::by_policy);
  };
  CHECK(staged(plain_p).staged.eqns.size() == 2);
  CHECK(staged(plain_p).residuals == 0);
  CHECK(staged(once_p).staged.eqns.size() == 1);
  CHECK(staged(once_p).residuals == 1);
}

}  // namespace
}  // namespace reprise
