#include "runtime/eager.h"

#include "base/machine.h"
#include "base/recent_cache.h"
#include "ops/conv.h"
#include "ops/records.h"
#include "program/equation_hash.h"
#include "runtime/compile.h"

#include <algorithm>
#include <mutex>

namespace reprise {
namespace {

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
  for (std::int64_t d : params.get<DotDims>("dimension_numbers").lhs_contracting)
    n *= x[0].shape()[static_cast<std::size_t>(d)];
  return n;
}
// The same of a convolution: an element of the result adds up what the kernel has for its feature.
std::int64_t convolution_products(const Arrays& x, const Params& params, const Type& out) {
  const auto features = static_cast<std::size_t>(Conv(params).layout.rhs_spec[0]);
  return x[1].size() == 0 ? 0 : out.size() * (x[1].size() / x[1].shape()[features]);
}

bool is_large(const Primitive& prim, const Arrays& x, const Params& params, const Types& out) {
  switch (prim.kind) {
    case Kind::elementwise:
      return std::max(most_elements(x), most_elements(out)) >= machine::elements_worth_compiling;
    case Kind::dot: return products(x, params, out[0]) >= machine::work_worth_compiling;
    case Kind::conv:
      return convolution_products(x, params, out[0]) >= machine::work_worth_compiling;
    // what is only looked into does not count
    case Kind::index: return most_elements(out) >= machine::elements_worth_compiling;
    // the others are mere copies
    case Kind::shape:
      return &prim == &transpose_p && most_elements(out) >= machine::elements_worth_compiling;
    // The evaluator adds in a more careful order, and nearly as fast as memory can be read.
    case Kind::reduce:
      return &prim != &reduce_sum_p && most_elements(x) >= machine::elements_worth_compiling;
    case Kind::constant:
    case Kind::call:
    case Kind::name:
    case Kind::effect: return false;
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

// Null: the evaluator would do it inside as well, or the process ends.
std::shared_ptr<const Executable> compiled(const Program& p) try {
  auto executable = compile(p);
  const auto& all = executable->code().instructions;
  const bool evaluates = std::any_of(all.begin(), all.end(), [&](const Instruction& i) {
    const auto* step = std::get_if<RunEval>(&i);
    return step != nullptr && step->eqn->prim == p.eqns[0].prim;
  });
  return evaluates ? nullptr : executable;
} catch (const RuntimeError&) {
  if (codegen::compiler_is_gone()) return nullptr;
  throw;
}

struct Key {
  std::size_t hash;
  std::shared_ptr<const Program> program;
  bool operator==(const Key& other) const {
    return hash == other.hash && same_structure(*program, *other.program);
  }
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.hash; }
};
Key key_of(Program p) {
  Shape sizes;
  for (const Type& t : p.types) sizes.insert(sizes.end(), t.shape.begin(), t.shape.end());
  const std::size_t hash = equation_hash(p.eqns[0], sizes);
  return {hash, std::make_shared<const Program>(std::move(p))};
}

// Code of single operations. Whoever computes with ever new shapes compiles for each; only the last
// ones stay.
struct EagerCode {
  std::mutex mutex;
  RecentCache<Key, Executable, KeyHash> recent{256};
};
EagerCode& eager_code() {
  static EagerCode& code = *new EagerCode;  // outlives whoever computes at exit
  return code;
}

std::shared_ptr<const Executable> code_for(Program p) {
  EagerCode& all = eager_code();
  const Key key = key_of(std::move(p));
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.recent.find(key)) return *found;
  }
  auto code = compiled(*key.program);
  const std::lock_guard lock(all.mutex);
  all.recent.add(key, code);
  return code;
}

}  // namespace

void release_eager_code() {
  const std::lock_guard lock(eager_code().mutex);
  eager_code().recent.clear();
}
std::size_t eager_code_count() {
  const std::lock_guard lock(eager_code().mutex);
  return eager_code().recent.size();
}

Arrays evaluate_eagerly(const Primitive& prim, const Arrays& x, const Params& params,
                        const Types& out) {
  if (is_large(prim, x, params, out)) {
    if (const auto code = code_for(program_of(prim, x, params, out))) return code->run(x);
  }
  if (prim.eval == nullptr) no_such_rule(prim, "evaluation");
  return prim.eval(x, params, out);
}

}  // namespace reprise
