// The partial evaluator: what is known, what is staged, and what crosses between them.
#include "transform/partial_eval.h"

#include "derivatives.h"
#include "program/check.h"
#include "program/print.h"
#include "transform/rewrite.h"

#include <algorithm>

namespace {

using namespace check;
using rp::Keep;
using rp::PolicySplit;
using rp::Program;
using rp::Repeat;
using rp::SplitMode;
using Mask = std::vector<bool>;

const rp::Type scalar{rp::float32, {}};

Program traced(const rp::FlatFunction& f, std::size_t arguments) {
  return *rp::trace(f, rp::Types(arguments, scalar), {.body = true}).program;
}
std::string text(const Program& p) { return rp::to_text(p, {}); }

rp::SplitPolicy keep_only(const std::string& primitive) {
  const auto decide = [primitive](const Program&, const rp::Equation& e,
                                  const rp::OutputNames&) -> rp::SplitDecision {
    if (e.prim->name == primitive) return Keep{};
    return Repeat{};
  };
  return {decide, "keep " + primitive};
}
rp::SplitPolicy by_name(const std::string& name) {
  const auto decide = [name](const Program&, const rp::Equation&,
                             const rp::OutputNames& names) -> rp::SplitDecision {
    if (std::find(names.begin(), names.end(), name) != names.end()) return Keep{};
    return Repeat{};
  };
  return {decide, "name " + name};
}
PolicySplit once(const Program& p, const Mask& unknown, const rp::SplitOutputs& outputs = {}) {
  return rp::split(p, unknown, unknown, {}, SplitMode::once, outputs);
}

// Both parts one after the other; the outputs of the program that they were made of.
Arrays joined(const PolicySplit& parts, const Mask& unknown, const Mask& available,
              const Arrays& x) {
  Arrays known_args, staged_args;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!unknown[i]) known_args.push_back(x[i]);
  }
  const Arrays known = rp::eval(parts.known, known_args);
  staged_args.assign(known.end() - static_cast<std::ptrdiff_t>(parts.residuals), known.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (available[i]) staged_args.push_back(x[i]);
  }
  const Arrays staged = rp::eval(parts.staged, staged_args);
  Arrays all;
  std::size_t next_known = 0, next_staged = 0;
  for (std::size_t k = 0; k < parts.unknown_out.size(); ++k) {
    all.push_back(parts.unknown_out[k] ? staged[next_staged] : known[next_known]);
    next_known += parts.unknown_out[k] ? 0 : 1;
    next_staged += parts.available_out[k] ? 1 : 0;
  }
  return all;
}

Arrays waves(const Arrays& x) {
  Array s = rp::sin(x[0]);
  Array c = rp::cos(s);
  Array m = c * x[1];
  Array e = rp::exp(s);
  return {m, e, x[0]};
}

TEST_CASE("split once: what is known is computed once, and only what is read crosses") {
  const Program p = traced(waves, 2);
  const PolicySplit parts = once(p, {false, true});
  CHECK(text(parts.known) == R"({ lambda ; a:f32[]. let
    b:f32[] = sin a
    c:f32[] = cos b
    d:f32[] = exp b
  in (d, a, c) })");
  CHECK(text(parts.staged) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }");
  CHECK(parts.residuals == 1);
  CHECK(parts.unknown_out == Mask{true, false, false});
  CHECK(parts.available_out == Mask{true, false, false});
}

TEST_CASE("split by policy: what the policy does not keep is computed again") {
  const Program p = traced(waves, 2);
  const Mask unknown{false, true}, all{true, true};
  const PolicySplit none = rp::split(p, unknown, all, keep_only("none"), SplitMode::by_policy);
  CHECK(none.residuals == 0);
  CHECK(none.staged.eqns.size() == 4);
  CHECK(none.available_out == Mask{true, true, true});
  const PolicySplit sine = rp::split(p, unknown, all, keep_only("sin"), SplitMode::by_policy);
  CHECK(sine.residuals == 1);
  CHECK(text(sine.staged) == R"({ lambda ; a:f32[] b:f32[] c:f32[]. let
    d:f32[] = cos a
    e:f32[] = mul d c
    f:f32[] = exp a
  in (e, f, b) })");
}

TEST_CASE("split by policy: names count for what they label") {
  const Program p = traced(
      [](const Arrays& x) {
        Array s = rp::sin(x[0]);
        Array n = rp::checkpoint_name(s, "wave");
        return Arrays{rp::cos(n) * x[1]};
      },
      2);
  const PolicySplit parts =
      rp::split(p, {false, true}, {true, true}, by_name("wave"), SplitMode::by_policy);
  CHECK(parts.residuals == 1);
  CHECK(parts.staged.eqns.size() == 2);  // cos, mul
}

TEST_CASE("split: both parts together compute what the program does") {
  const Program p = traced(waves, 2);
  const Arrays x{rp::full({}, 0.5, rp::float32), rp::full({}, 2.0, rp::float32)};
  const Arrays expected = rp::eval(p, x);
  for (const Mask& unknown :
       {Mask{false, true}, Mask{true, false}, Mask{true, true}, Mask{false, false}}) {
    const Arrays again = joined(once(p, unknown), unknown, unknown, x);
    const Mask all{true, true};
    const PolicySplit kept = rp::split(p, unknown, all, keep_only("cos"), SplitMode::by_policy);
    const Arrays repeated = joined(kept, unknown, all, x);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CHECK(again[k].item<float>() == expected[k].item<float>());
      CHECK(repeated[k].item<float>() == expected[k].item<float>());
    }
  }
}

TEST_CASE("split: outputs are unknown, or available, where the caller says so") {
  const Program p = traced(waves, 2);
  rp::SplitOutputs outputs;
  outputs.unknown = {false, true, false};
  const PolicySplit forced = once(p, {false, true}, outputs);
  CHECK(forced.unknown_out == Mask{true, true, false});
  CHECK(forced.residuals == 2);  // cos and exp
  rp::SplitOutputs available;
  available.all_available = true;
  PolicySplit every = once(p, {false, true}, available);
  CHECK(every.available_out == Mask{true, true, true});
  CHECK(every.staged.out.size() == 3);
  rp::drop_known_outputs(every);
  CHECK(every.staged.out.size() == 1);
  CHECK(every.available_out == every.unknown_out);
}

TEST_CASE("split of a call: residuals that are operands or results cross without the call") {
  const auto inner = rp::jit([](Array x, Array y) {
    Array s = rp::sin(x);
    Array m = s * y;
    Array n = m * x;
    return std::pair{s, n};
  });
  const Program p = traced(
      [&](const Arrays& x) {
        const auto [s, m] = inner(x[0], x[1]);
        return Arrays{s, m};
      },
      2);
  const PolicySplit parts = once(p, {false, true});
  CHECK(text(parts.known) == R"({ lambda ; a:f32[]. let
    b:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    ] a
  in (b, b, a) })");
  CHECK(parts.residuals == 2);
  CHECK(parts.staged.eqns.size() == 1);
}

TEST_CASE("split of a shared body is made once per masks and policy") {
  const Program p = traced(waves, 2);
  const Mask unknown{false, true}, all{true, true};
  const auto first = rp::shared_split(p, unknown, all, keep_only("sin"), SplitMode::by_policy);
  CHECK(rp::shared_split(p, unknown, all, keep_only("sin"), SplitMode::by_policy) == first);
  CHECK(rp::shared_split(p, unknown, all, keep_only("cos"), SplitMode::by_policy) != first);
  CHECK(rp::shared_split(p, unknown, unknown, {}, SplitMode::once) !=
        rp::shared_split(p, all, all, {}, SplitMode::once));
}

TEST_CASE("split_invariant: what a step of a loop computes from constants goes before it") {
  const Program p = traced(
      [](const Arrays& x) {
        Array s = rp::sin(x[0]);
        Array m = s * x[1];
        Array e = rp::exp(x[0]);
        return Arrays{m, e};
      },
      2);
  const PolicySplit parts = rp::split_invariant(p, {false, true});
  CHECK(parts.unknown_out == Mask{true, false});
  CHECK(text(parts.known) ==
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = exp a in (c, b) }");
  CHECK(text(parts.staged) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }");
}

TEST_CASE("split_invariant: effects happen at every step, though nothing in them varies") {
  const Program p = traced(
      [](const Arrays& x) {
        Array s = rp::sin(x[0]);
        rp::debug::print("{}", s);
        return Arrays{x[1]};
      },
      2);
  const PolicySplit parts = rp::split_invariant(p, {false, true});
  CHECK(parts.residuals == 1);
  CHECK(parts.known.eqns.size() == 1);
  CHECK(parts.staged.eqns.size() == 1);
}

TEST_CASE("split_invariant: a call of jit is split, and its results come from where they are") {
  const auto inner = rp::jit([](Array x, Array y) {
    Array s = rp::sin(x);
    Array m = s * y;
    return std::tuple{s, m, x};
  });
  const Program p = traced(
      [&](const Arrays& x) {
        const auto [s, m, same] = inner(x[0], x[1]);
        return Arrays{s, m, same};
      },
      2);
  const PolicySplit parts = rp::split_invariant(p, {false, true});
  CHECK(parts.unknown_out == Mask{false, true, false});
  CHECK(text(parts.known) == R"({ lambda ; a:f32[]. let
    b:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    ] a
  in (b, a, b) })");
  CHECK(text(parts.staged) == R"({ lambda ; a:f32[] b:f32[]. let
    c:f32[] = jit[
      name=<lambda>
      jaxpr={ lambda ; b:f32[] a:f32[]. let c:f32[] = mul a b in (c,) }
    ] b a
  in (c,) })");
}

TEST_CASE("unzip: the linear part takes known values as residuals only") {
  const Program p = traced(
      [](const Arrays& x) {
        Array c = rp::cos(x[0]);
        Array unused = rp::sin(x[0]);
        Array d = c * x[1];
        return Arrays{d, unused};
      },
      2);
  const auto parts = rp::unzip(p, {false, true});
  CHECK(parts->unknown_out == Mask{true, false});
  CHECK(text(*parts->linear) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }");
  CHECK(parts->known->out.size() == 2);  // the known output, the residual
  CHECK(rp::unzip(p, {false, true}) == parts);
}

TEST_CASE("what only an effect in a loop reads is handed to the loop") {
  const auto f = [](Array w, Array xs) {
    const auto step = [&](Array c, Array x) {
      const Array wave = rp::sin(w);
      rp::debug::print("{}", wave);
      return std::pair{c + w * x, c};
    };
    return rp::scan(step, Array(0.0f), xs).first;
  };
  const auto p = rp::make_jaxpr(rp::grad(f))(rp::ones({}), rp::ones({4})).program();
  rp::check(*p);  // every variable of every body is bound
}

}  // namespace
