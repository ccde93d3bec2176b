// Outputs that are inputs or other outputs: who calls a program has them already.
#include "transform/forward.h"

#include "derivatives.h"
#include "program/trace.h"

namespace {

using namespace check;
using rp::Atom;
using rp::Forwarding;
using Kind = rp::OutputSource::Kind;

// a, b -> (a, s, 1.0, s, b)
rp::Program repeating() {
  const rp::Type scalar{rp::float32, {}};
  const auto f = [](const Arrays& x) {
    Array s = rp::sin(x[0]);
    return Arrays{x[0], s, s, s, x[1]};
  };
  rp::Program p = *rp::trace(f, {scalar, scalar}, {.body = true}).program;
  p.out[2] = Atom::of(rp::make_literal(rp::Dtype::f32, 1.0));
  return p;
}
std::vector<Kind> kinds(const rp::Forwarded& f) {
  std::vector<Kind> all;
  for (const rp::OutputSource& s : f.from) all.push_back(s.kind);
  return all;
}

TEST_CASE("without leave every output is returned") {
  const rp::Forwarded all = rp::forward_outputs(repeating(), {});
  CHECK(kinds(all) == std::vector<Kind>(5, Kind::output));
  CHECK(all.program->out.size() == 5);
}

TEST_CASE("inputs, repetitions and literals are not returned where that is allowed") {
  const rp::Forwarded all = rp::forward_outputs(repeating(), {0, 0, true});
  CHECK(kinds(all) ==
        std::vector<Kind>{Kind::input, Kind::output, Kind::literal, Kind::repeated, Kind::input});
  CHECK(all.program->out.size() == 1);
  const rp::Forwarded last = rp::forward_outputs(repeating(), {4, 3, false});
  CHECK(kinds(last) ==
        std::vector<Kind>{Kind::output, Kind::output, Kind::output, Kind::repeated, Kind::input});
  const rp::Forwarded first =
      rp::forward_outputs(repeating(), {0, Forwarding::never, false, {true, false}});
  CHECK(kinds(first) ==
        std::vector<Kind>{Kind::input, Kind::output, Kind::output, Kind::output, Kind::output});
}

TEST_CASE("a source is read from the operands and results of a call") {
  const rp::Forwarded all = rp::forward_outputs(repeating(), {0, 0, true});
  const std::vector<Atom> in{Atom::of(10), Atom::of(11)};
  const std::vector<rp::Var> out{12};
  CHECK(all.from[0].of(in, out) == Atom::of(10));
  CHECK(all.from[1].of(in, out) == Atom::of(12));
  CHECK(!all.from[2].of(in, out).is_var());
  CHECK(all.from[3].of(in, out) == Atom::of(12));
  CHECK(all.from[4].of(in, out) == Atom::of(11));
}

}  // namespace
