// What lives from the forward to the backward pass: the fewest bytes from which the rest follows.
#include "plan/keep.h"

#include "program/check.h"
#include "program/primitive.h"
#include "runtime/compile.h"
#include "same_bits.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace rp = reprise;
using rp::Array;

namespace {

std::ptrdiff_t count(const rp::Program& p, const std::string& primitive) {
  return std::count_if(p.eqns.begin(), p.eqns.end(),
                       [&](const rp::Equation& e) { return e.prim->name == primitive; });
}
template <class F, class... A>
rp::Program before_keep(const F& f, const A&... args) {
  const WithoutPass without("keep");
  return *rp::lowered(*rp::make_jaxpr(f)(args...).program());
}

// Elementwise functions of one value whose derivatives need each step.
Array chain(Array x) {
  const Array a = rp::sin(x);
  const Array b = rp::exp(a);
  const Array c = rp::tanh(b);
  return rp::sum(c * c);
}

}  // namespace

TEST_CASE("cheap values are computed again where keeping one instead takes fewer bytes") {
  const rp::Program p = before_keep(rp::grad(chain), rp::ones({4096}));
  const rp::Program kept = rp::plan::keep(p);
  rp::check(kept);
  CHECK(kept.in.size() == p.in.size());
  CHECK(kept.eqns.size() >= p.eqns.size());
}

TEST_CASE("no product is computed twice") {
  const auto f = [](Array x, Array w) {
    const Array h = rp::tanh(rp::matmul(x, w));
    const Array y = rp::tanh(rp::matmul(h, w));
    return rp::sum(y * y);
  };
  const Array x = rp::ones({64, 64}), w = rp::full({64, 64}, 0.01, rp::float32);
  const rp::Program p = before_keep(rp::grad<0, 1>(f), x, w);
  CHECK(count(rp::plan::keep(p), "dot_general") == count(p, "dot_general"));
}

TEST_CASE("a plan with it takes no more memory than one without, and computes the same bits") {
  const auto f = rp::grad(chain);
  const Array x = rp::linspace(-2.0, 2.0, 5000);
  const auto peak = [&] { return rp::jit(f).lower(x).compile().memory_analysis().peak_bytes; };
  const std::size_t with = peak();
  const Array got = rp::jit(f)(x);
  const WithoutPass without("keep");
  CHECK(with <= peak());
  check_same_elements(got, rp::jit(f)(x));
}
