#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "ops/conv.h"
#include "ops/records.h"
#include "program/evaluate.h"
#include "runtime/compile.h"

namespace reprise {
namespace {

// From here on the evaluator takes longer than compiling once does.
constexpr std::int64_t many_elements = 1 << 17, many_products = 1 << 20;

std::int64_t most_elements(const Types& types) {
  std::int64_t n = 0;
  for (const Type& t : types) n = std::max(n, t.size());
  return n;
}
std::int64_t most_elements(const Arrays& x) {
  std::int64_t n = 0;
  for (const Array& a : x) n = std::max(n, a.size());
  return n;
}

// Multiply-adds of a matrix product.
std::int64_t products(const Arrays& x, const Params& params, const Type& out) {
  std::int64_t n = out.size();
  for (std::int64_t d : params.get<DotDims>("dimension_numbers").lhs_contracting) n *= x[0].shape()[static_cast<std::size_t>(d)];
  return n;
}
// The same of a convolution: an element of the result adds up what the kernel has for its feature.
std::int64_t convolution_products(const Arrays& x, const Params& params, const Type& out) {
  const auto features = static_cast<std::size_t>(Conv(params).layout.rhs_spec[0]);
  return x[1].size() == 0 ? 0 : out.size() * (x[1].size() / x[1].shape()[features]);
}

bool is_large(const Primitive& prim, const Arrays& x, const Params& params, const Types& out) {
  switch (prim.kind) {
    case Kind::elementwise: return std::max(most_elements(x), most_elements(out)) >= many_elements;
    case Kind::dot: return products(x, params, out[0]) >= many_products;
    case Kind::conv: return convolution_products(x, params, out[0]) >= many_products;
    case Kind::index: return most_elements(out) >= many_elements;  // what is only looked into does not count
    case Kind::shape: return &prim == &transpose_p && most_elements(out) >= many_elements;  // the others are mere copies
    // The evaluator adds in a more careful order, and nearly as fast as memory can be read.
    case Kind::reduce: return &prim != &reduce_sum_p && most_elements(x) >= many_elements;
    case Kind::constant:
    case Kind::call:
    case Kind::name: return false;
  }
  return false;
}

// { lambda ; a b. let c = prim a b in (c,) }
Program program_of(const Primitive& prim, const Arrays& x, const Params& params, const Types& out) {
  Program p;
  Equation e;
  e.prim = &prim;
  e.params = params;
  for (const Array& a : x) {
    p.in.push_back(p.fresh(a.type()));
    e.in.push_back(Atom::of(p.in.back()));
  }
  for (const Type& t : out) {
    e.out.push_back(p.fresh(t));
    p.out.push_back(Atom::of(e.out.back()));
  }
  p.eqns.push_back(std::move(e));
  return p;
}

// Null: the evaluator would do it inside as well.
std::shared_ptr<const Executable> compiled(const Program& p) {
  auto executable = compile(p);
  const auto& all = executable->code().instructions;
  const bool evaluates = std::any_of(all.begin(), all.end(), [&](const Instruction& i) {
    const auto* step = std::get_if<RunEval>(&i);
    return step != nullptr && step->eqn->prim == p.eqns[0].prim;
  });
  return evaluates ? nullptr : executable;
}

std::shared_ptr<const Executable> code_for(Program p) {
  constexpr std::size_t most = 4096;
  struct Known {
    Program program;
    std::shared_ptr<const Executable> code;
  };
  static std::mutex mutex;
  static auto& known = *new std::unordered_multimap<std::size_t, Known>;  // outlives whoever computes at exit
  const Equation& e = p.eqns[0];
  std::size_t key = hash_of(e.params) * 31 + reinterpret_cast<std::uintptr_t>(e.prim);
  for (const Type& t : p.types) {
    for (std::int64_t d : t.shape) key = key * 1000003 + static_cast<std::size_t>(d);
  }
  {
    const std::lock_guard lock(mutex);
    const auto [first, last] = known.equal_range(key);
    const auto found = std::find_if(first, last, [&](const auto& k) { return same_structure(k.second.program, p); });
    if (found != last) return found->second.code;
  }
  const auto code = compiled(p);
  const std::lock_guard lock(mutex);
  if (known.size() >= most) known.clear();
  known.emplace(key, Known{std::move(p), code});
  return code;
}

}  // namespace

Arrays evaluate(const Primitive& prim, const Arrays& x, const Params& params, const Types& out) {
  if (is_large(prim, x, params, out)) {
    if (const auto code = code_for(program_of(prim, x, params, out))) return code->run(x);
  }
  if (prim.eval == nullptr) no_such_rule(prim, "evaluation");
  return prim.eval(x, params, out);
}

}  // namespace reprise
