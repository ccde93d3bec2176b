// Equations know whether the user wrote them, a checkpoint plays them again, or transposition made
// them.
#include "program/primitive.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;
using rp::Phase;

namespace {

// "sin cos | recompute: mul | backward: mul": the primitives by phase, in program order; bodies in
// brackets.
void append(std::string& out, const rp::Program& p, Phase call, Phase& now) {
  static const std::string names[] = {"forward", "recompute", "backward"};
  for (const rp::Equation& e : p.eqns) {
    const Phase phase = rp::inside(call, e.phase);
    if (phase != now) out += "| " + names[static_cast<int>(phase)] + ": ";
    now = phase;
    out += e.prim->name;
    out += ' ';
    rp::for_each_program(e.params, [&](const rp::ProgramPtr& body) {
      out += "[ ";
      append(out, *body, phase, now);
      out += "] ";
    });
  }
}
std::string phases(const rp::Program& p) {
  std::string out;
  Phase now = Phase::forward;
  append(out, p, Phase::forward, now);
  return out;
}

template <class F, class... A>
std::string lowered_phases(const F& f, const A&... args) {
  return phases(*rp::lowered(*rp::make_jaxpr(f)(args...).program()));
}

Array chain(Array x) { return rp::sin(rp::sin(rp::tanh(x))); }
Array summed(Array x) { return rp::sum(chain(x)); }

}  // namespace

TEST_CASE("without a checkpoint there is a forward and a backward phase") {
  const Array x = rp::ones({3});
  CHECK(phases(*rp::make_jaxpr(summed)(x).program()) == "tanh sin sin reduce_sum ");
  CHECK(
      phases(*rp::make_jaxpr(rp::grad(summed))(x).program()) ==
      "tanh sub sin cos sin cos reduce_sum | backward: broadcast_in_dim mul mul mul mul add_any ");
}

TEST_CASE("a checkpoint that is opened plays again before it goes backward") {
  const Array x = rp::ones({3});
  const auto f = [](Array y) { return rp::sum(rp::checkpoint(chain)(y)); };
  CHECK(lowered_phases(rp::value_and_grad(f), x) ==
        "tanh sin sin reduce_sum | backward: broadcast_in_dim | recompute: tanh sub sin cos cos | "
        "backward: mul mul mul mul add_any ");
}

TEST_CASE("phases pass through vmap, through calls and through a second trace") {
  const Array x = rp::ones({2, 3});
  const auto f = [](Array y) { return rp::sum(rp::checkpoint(chain)(y)); };
  const std::string one = lowered_phases(rp::grad(f), rp::ones({3}));
  CHECK(one ==
        "| backward: broadcast_in_dim | recompute: tanh sub sin cos cos | backward: mul mul mul "
        "mul add_any ");
  CHECK(lowered_phases(rp::vmap(rp::grad(f)), x) ==
        "| backward: broadcast_in_dim | recompute: tanh sub sin cos cos | backward: "
        "broadcast_in_dim mul mul mul mul add_any ");
  CHECK(lowered_phases(rp::jit(rp::grad(f)), rp::ones({3})) == one);
  CHECK(lowered_phases([f](Array y) { return rp::jit(rp::grad(f))(y); }, rp::ones({3})) == one);
}

TEST_CASE("a program that both passes share says nothing about either") {
  const auto twice = rp::jit([](Array y) { return rp::sin(y) + 1.0; }, {.name = "twice"});
  auto f = rp::custom_vjp([twice](Array y) { return twice(y); },
                          [twice](Array y) {
                            return std::pair{twice(y), y};
                          },
                          [twice](Array, Array ct) { return twice(ct); });
  CHECK(lowered_phases(rp::value_and_grad([f](Array y) { return rp::sum(f(y)); }), rp::ones({3})) ==
        "sin add reduce_sum | backward: broadcast_in_dim sin add ");
}

TEST_CASE("the backward loop of a scan plays again what its body's checkpoint did not save") {
  const auto f = [](Array w, Array x) {
    const auto body = rp::checkpoint([](Array c, Array v) {
      return std::pair{rp::sin(rp::sin(c * v)), c};
    });
    return rp::sum(rp::scan([&](Array c, Array v) { return body(c, v); }, x, w).first);
  };
  const std::string all = lowered_phases(rp::grad(f), rp::ones({4, 3}), rp::ones({3}));
  CHECK(all.find("scan [ mul sin sin ]") != std::string::npos);
  CHECK(all.find("| backward: ") < all.find("| recompute: "));
  CHECK(all.find("scan [ | recompute: mul sin cos cos | backward: mul mul mul") !=
        std::string::npos);
}

TEST_CASE("what the compiler repeats to save memory counts as recomputation") {
  const Array x = rp::ones({256, 256});
  const auto f = [](Array w, Array y) {
    for (int i = 0; i < 4; ++i) y = rp::exp(rp::sin(rp::matmul(y, w)) * 0.1);
    return rp::sum(y);
  };
  CHECK(phases(*rp::make_jaxpr(rp::grad(f))(x, x).program()).find("recompute") ==
        std::string::npos);
  CHECK(lowered_phases(rp::grad(f), x, x).find("recompute") != std::string::npos);
}
