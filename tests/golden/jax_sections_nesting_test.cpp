// Sections g05, g20 and g22: checkpoint and jit inside each other, sharing, forwarding, loops.
#include "golden/sections.h"

using namespace golden;

namespace {

const rp::CheckpointOptions everything{.policy = P::everything_saveable};
const Array x = 1.0, y = 2.0;

Array sin_sin(Array v) {
  v = rp::sin(v);
  return rp::sin(v);
}
// cos of another function.
template <class F>
auto cos_of(F f) {
  return [f](Array v) {
    v = f(v);
    return rp::cos(v);
  };
}
template <class F>
void check_all(const std::string& heading, const F& f) {
  Section s("g05_nested_jit", heading);
  s.residuals(f, RP_ARGS(x));
  s.forward(f, x);
  s.traced(rp::grad(f), x);
  s.end();
}
Pair sin_exp(Array v) {
  Array s = rp::sin(v);
  return {s, rp::exp(v)};
}
template <class F>
auto combined(F f) {
  return rp::checkpoint(
      [f](Array v) {
        const Pair a = f(v);
        Array c = rp::cos(a.first);
        return c * a.second;
      },
      everything);
}

}  // namespace

TEST_CASE("g05: nested checkpoints with policies of their own") {
  check_all("nested: outer everything inner none",
            rp::checkpoint(cos_of(rp::checkpoint(sin_sin)), everything));
  check_all("nested: outer none inner everything",
            rp::checkpoint(cos_of(rp::checkpoint(sin_sin, everything))));
  check_all("nested: outer none inner none", rp::checkpoint(cos_of(rp::checkpoint(sin_sin))));
  auto named = [](Array v) {
    v = rp::sin(v);
    v = rp::checkpoint_name(v, "a");
    v = rp::sin(v);
    v = rp::checkpoint_name(v, "b");
    return rp::sin(v);
  };
  auto inner = rp::checkpoint(named, {.policy = P::save_only_these_names("b")});
  check_all("nested names: outer save_only a ; inner save only b",
            rp::checkpoint(cos_of(inner), {.policy = P::save_only_these_names("a")}));
}

TEST_CASE("g05: jit inside checkpoint, checkpoint inside jit, jit alone") {
  auto jitted = rp::jit(sin_sin);
  check_all("jit in remat, everything", rp::checkpoint(cos_of(jitted), everything));
  check_all("jit in remat, none", rp::checkpoint(cos_of(jitted)));
  check_all("remat in jit", rp::jit(rp::checkpoint([](Array v) {
              v = rp::sin(v);
              return rp::cos(v);
            })));
  check_all("jit no remat", cos_of(jitted));
}

TEST_CASE("g22: residuals forwarded from inputs and outputs of calls, rounded once") {
  Section s("g22_residual_forwarding",
            "residual used in known -> reduce_precision after nested remat / jit / scan output");
  auto by_checkpoint = combined(rp::checkpoint(sin_exp));
  s.residuals(by_checkpoint, RP_ARGS(x));
  s.forward(by_checkpoint, x);
  auto by_jit = combined(rp::jit(sin_exp));
  s.residuals(by_jit, RP_ARGS(x));
  s.forward(by_jit, x);
  s.end();
  auto product = rp::jit([](Array a, Array b) { return a * b; });
  auto f = rp::checkpoint(
      [product](Array a, Array b) {
        a = rp::sin(a);
        return product(a, b);
      },
      everything);
  Section forwarded("g22_residual_forwarding",
                    "jit inside remat: residual forwarded from input / output");
  forwarded.residuals(f, RP_ARGS(x, y));
  forwarded.forward(f, x, y);
  forwarded.end();
}

TEST_CASE("g22: a name inside jit, one residual with two readers, one differentiated argument") {
  auto jitted = rp::jit([](Array a) {
    a = rp::sin(a);
    a = rp::checkpoint_name(a, "n");
    return a * 2.0;
  });
  auto named = rp::checkpoint(
      [jitted](Array v) {
        v = jitted(v);
        return rp::sin(v);
      },
      {.policy = P::save_only_these_names("n")});
  Section n("g22_residual_forwarding", "named inside jit inside remat");
  n.residuals(named, RP_ARGS(x));
  n.forward(named, x);
  n.traced(rp::grad(named), x);
  n.end();
  auto readers = rp::checkpoint(
      [](Array a, Array b) {
        Array s = a * b;
        s = rp::sin(s);
        Array c = rp::cos(b);
        return s * c;
      },
      everything);
  Section r("g22_residual_forwarding",
            "name order and dedup: same residual used twice, x used by two");
  r.residuals(readers, RP_ARGS(x, y));
  r.forward(readers, x, y);
  r.traced(rp::grad<0, 1>(readers), x, y);
  r.end();
  auto one = rp::checkpoint([](Array W, Array v) {
    v = rp::matmul(W, v);
    v = rp::sin(v);
    return rp::sum(v);
  });
  Section g("g22_residual_forwarding", "grad wrt one arg only: zero tangents for others");
  g.traced(rp::grad(one), rp::ones({2, 2}), rp::ones({2}));
  g.end();
}

TEST_CASE("g20: one function is printed once, whoever wraps it; policies differ") {
  Section("g20_literals_caching_scan", "same fun, new wrapper each time")
      .traced([](Array v) { return rp::checkpoint(sin_sin)(rp::checkpoint(sin_sin)(v)); }, x);
  Section("g20_literals_caching_scan", "same fun different policy")
      .traced(
          [](Array v) {
            v = rp::checkpoint(sin_sin)(v);
            return rp::checkpoint(sin_sin, {.policy = P::dots_saveable})(v);
          },
          x);
  Section("g20_literals_caching_scan", "lambda created each time")
      .traced(
          [](Array v) {
            v = rp::checkpoint([](Array w) { return rp::sin(w); })(v);
            return rp::checkpoint([](Array w) { return rp::sin(w); })(v);
          },
          x);
}

TEST_CASE("g20: residuals of loops: constants, carries, scanned inputs, hoisted values") {
  const Array W = rp::ones({3, 3}), c = rp::ones({3}), xs = rp::ones({4});
  auto f = [](Array w, Array carry, Array inputs) {
    auto body = [w](Array v, Array e) {
      Array s = rp::matmul(w, v);
      s = rp::sin(s);
      s = s * e;
      Array t = rp::cos(w);
      t = rp::sum(t);
      Array next = s + t;
      return Pair{next, rp::sum(v)};
    };
    return rp::scan(body, carry, inputs);
  };
  Section kinds("g20_literals_caching_scan", "scan residual kinds: consts, carry, xs, hoisted");
  kinds.residuals(f, rp::arg("W", W), rp::arg("c", c), rp::arg("xs", xs));
  kinds.forward(f, W, c, xs);
  kinds.end();
  auto closed = [](Array w, Array v) {
    auto body = rp::checkpoint([w](Array a, rp::None) {
      a = rp::matmul(w, a);
      return std::pair{rp::sin(a), rp::none};
    });
    return rp::scan(body, v, rp::none, {.length = 4}).first;
  };
  Section constant("g20_literals_caching_scan", "scan remat body closure const");
  constant.residuals(closed, rp::arg("W", W), rp::arg("c", c));
  constant.traced(closed, W, c);
  constant.forward(closed, W, c);
  constant.traced([closed](Array w, Array v) { return rp::vjp(closed, w, v).second(v); }, W, c);
  constant.end();
}
