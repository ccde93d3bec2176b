// The order of closed-over values, as JAX lists the constants of the same loops.
#include "transform/closure_order.h"

#include "program/program.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace rp = reprise;

namespace {

// Numbers of the first `closed` inputs in their order; the others stay inputs.
std::vector<int> order_of(const char* text, std::size_t closed) {
  rp::Program p = *rp::parse_jaxpr(text).program();
  std::vector<bool> is_closed_over(p.types.size());
  const std::vector<rp::Var> first(p.in.begin(),
                                   p.in.begin() + static_cast<std::ptrdiff_t>(closed));
  for (rp::Var v : first) is_closed_over[static_cast<std::size_t>(v)] = true;
  p.in.erase(p.in.begin(), p.in.begin() + static_cast<std::ptrdiff_t>(closed));
  std::vector<int> order;
  for (rp::Var v : rp::closure_order(p, is_closed_over)) {
    order.push_back(static_cast<int>(std::find(first.begin(), first.end(), v) - first.begin()));
  }
  return order;
}

}  // namespace

TEST_CASE("closed-over values are listed from the results back, not by first use") {
  CHECK(order_of(R"({ lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
    e:f32[] = mul d a
    f:f32[] = mul d b
    g:f32[] = mul d c
    h:f32[] = sin g
    i:f32[] = cos g
    j:f32[] = mul f e
    k:f32[] = add h j
  in (k, i, e, f) })",
                 3) == std::vector<int>{2, 1, 0});
  CHECK(order_of(R"({ lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
    e:f32[] = sin d
    f:f32[] = mul e a
    g:f32[] = cos d
    h:f32[] = mul g b
    i:f32[] = mul f c
  in (h, i) })",
                 3) == std::vector<int>{1, 0, 2});
}

TEST_CASE("a closed-over value is listed once, and only if a result depends on it") {
  CHECK(order_of(R"({ lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
    e:f32[] = mul a a
    f:f32[] = mul c d
    g:f32[] = mul e d
  in (g, a, g) })",
                 3) == std::vector<int>{0});
}
