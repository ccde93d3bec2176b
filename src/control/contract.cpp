#include "control/contract.h"

#include "ops/elementwise.h"
#include "ops/records.h"
#include "program/walk.h"

#include <cmath>
#include <unordered_map>

namespace reprise {
namespace {

bool has_fused_form(const Type& t) { return t.dtype == Dtype::f32 || t.dtype == Dtype::f64; }

Array fused(const Array& a, const Array& b, const Array& c, const Type& out) {
  NewArray result(out);
  if (result.size() == 0) return std::move(result).finish();
  const elementwise::Walk walk({a.type(), b.type(), c.type()}, out.shape);
  visit_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T>) {
      const T *pa = elements<T>(a), *pb = elements<T>(b), *pc = elements<T>(c);
      const std::int64_t sa = walk.inner[0], sb = walk.inner[1], sc = walk.inner[2];
      elementwise::for_each_row<3>(walk, [&](std::int64_t o, const std::int64_t* at) {
        T* to = result.data<T>() + o;
        for (std::int64_t i = 0; i < walk.inner_size; ++i) {
          to[i] = std::fma(pa[at[0] + i * sa], pb[at[1] + i * sb], pc[at[2] + i * sc]);
        }
      });
    }
  });
  return std::move(result).finish();
}

std::vector<int> count_reads(const Program& p) {
  std::vector<int> reads(p.types.size());
  const auto count = [&](const Atom& a) {
    if (a.is_var()) ++reads[static_cast<std::size_t>(a.var)];
  };
  for (const Equation& e : p.eqns) {
    for (const Atom& a : e.in) count(a);
  }
  for (const Atom& a : p.out) count(a);
  return reads;
}

}  // namespace

Arrays eval_contracted(const Program& p, const Arrays& args) {
  const std::vector<int> reads = count_reads(p);
  std::unordered_map<Var, Arrays> factors;  // of products with one reader
  const auto apply = [&](const Equation& e, const Arrays& x) -> Arrays {
    if (e.prim == &mul_p && reads[static_cast<std::size_t>(e.out[0])] == 1) factors[e.out[0]] = x;
    if (e.prim != &add_p || !has_fused_form(p.type(e.out[0]))) return e.prim->bind(x, e.params);
    for (std::size_t k = 0; k < 2; ++k) {
      const auto product = factors.find(e.in[k].var);
      if (product == factors.end()) continue;
      return {fused(product->second[0], product->second[1], x[1 - k], p.type(e.out[0]))};
    }
    return e.prim->bind(x, e.params);
  };
  return walk(p, args, apply);
}

}  // namespace reprise
