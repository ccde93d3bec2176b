// Properties of checkpoint, on random programs: the same values, the same gradients, nothing saved
// that the policy does not allow, the recomputation equal to the forward pass bit for bit.
#include "api/inspect.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/records.h"
#include "program/program.h"
#include "random_program.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace rp = reprise;
using random_program::PolicyKind;
using random_program::PolicyRecipe;
using random_program::RandomProgram;
using rp::Array;
using rp::Arrays;

namespace {

bool same_bits(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return a.type() == b.type() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

// The largest difference, relative to the largest magnitude of all. Values inside are of order one,
// so a gradient that is smaller by far is zero but for rounding.
double distance(const Arrays& a, const Arrays& b) {
  double difference = 0, magnitude = 1e-3;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    if (x.size() != y.size()) return 1;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (!(std::abs(x[k] - y[k]) <= 1e300)) return 1;  // NaN
      difference = std::max(difference, std::abs(x[k] - y[k]));
      magnitude = std::max(magnitude, std::abs(y[k]));
    }
  }
  return difference / magnitude;
}

// ----------------------------------------------------------------- what a policy allows, once more
enum class Verdict { recompute, save, offload };

struct Producer {
  const rp::Program& program;
  const rp::Equation& equation;
  bool is(const char* primitive) const {
    return std::string_view(equation.prim->name) == primitive;
  }
  std::string name() const { return is("name") ? equation.params.get<std::string>("name") : ""; }
  bool is_dot(bool with_batches) const {
    if (!is("dot_general")) return false;
    return with_batches || equation.params.get<rp::DotDims>("dimension_numbers").lhs_batch.empty();
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (rp::Var v : equation.out) sum += program.type(v).nbytes();
    return sum;
  }
  // The names that the value carries: of the equation itself and of name equations that read it.
  std::set<std::string> labels() const {
    std::set<std::string> found;
    std::set<rp::Var> values(equation.out.begin(), equation.out.end());
    if (is("name")) found.insert(name());
    for (const rp::Equation& e : program.eqns) {
      if (e.prim != &rp::name_p || !e.in[0].is_var() || !values.count(e.in[0].var)) continue;
      found.insert(e.params.get<std::string>("name"));
      values.insert(e.out[0]);
    }
    return found;
  }
};

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Verdict verdict(const PolicyRecipe& r, const Producer& p) {
  const auto when = [](bool saved) { return saved ? Verdict::save : Verdict::recompute; };
  switch (r.kind) {
    case PolicyKind::none: return Verdict::recompute;
    case PolicyKind::everything: return Verdict::save;
    case PolicyKind::nothing: return Verdict::recompute;
    case PolicyKind::dots: return when(p.is_dot(true));
    case PolicyKind::dots_no_batch: return when(p.is_dot(false));
    case PolicyKind::only_names: return when(p.is("name") && contains(r.names, p.name()));
    case PolicyKind::any_names_but: return when(p.is("name") && !contains(r.names, p.name()));
    case PolicyKind::anything_except: {
      const std::set<std::string> labels = p.labels();
      return when(std::none_of(labels.begin(), labels.end(),
                               [&](const auto& l) { return contains(r.names, l); }));
    }
    case PolicyKind::offload_dots: return p.is_dot(false) ? Verdict::offload : Verdict::recompute;
    case PolicyKind::save_and_offload:
      if (!p.is("name")) return Verdict::recompute;
      if (contains(r.names, p.name())) return Verdict::save;
      return contains(r.offloaded, p.name()) ? Verdict::offload : Verdict::recompute;
    case PolicyKind::at_least: return when(p.bytes() >= r.bytes);
    case PolicyKind::at_most: return when(p.bytes() <= r.bytes);
    case PolicyKind::custom_sines: return when(p.is("sin") || p.is("cos"));
    case PolicyKind::custom_answers:
      if (p.is("mul")) return Verdict::offload;
      return when(p.is("tanh"));
    case PolicyKind::either: {
      const Verdict a = verdict(r.parts[0], p), b = verdict(r.parts[1], p);
      if (a == Verdict::save || b == Verdict::save) return Verdict::save;
      return a == Verdict::recompute ? b : a;
    }
    case PolicyKind::both: {
      const Verdict a = verdict(r.parts[0], p), b = verdict(r.parts[1], p);
      if (a == Verdict::recompute || b == Verdict::recompute) return Verdict::recompute;
      return a == Verdict::offload ? a : b;
    }
    case PolicyKind::neither: return when(verdict(r.parts[0], p) == Verdict::recompute);
  }
  return Verdict::recompute;
}

// Follows a value of the forward program to the equations that compute it, into the bodies of
// calls, and asks about each of them.
class ResidualCheck {
 public:
  explicit ResidualCheck(const PolicyRecipe& policy) : policy_(policy) {}
  std::string offence;  // the first equation whose value may not be saved

  struct Frame {
    const rp::Program& program;
    const Frame* outer;         // null: the whole program
    const rp::Equation* call;   // of the outer program
    std::size_t first_operand;  // of the call that is an input of the program
  };

  void follow(const Frame& at, const rp::Atom& a, Verdict wanted) {
    if (!a.is_var() || !visited_.insert({&at.program, a.var, at.outer}).second) return;
    const auto& in = at.program.in;
    if (const auto it = std::find(in.begin(), in.end(), a.var); it != in.end()) {
      follow_input(at, static_cast<std::size_t>(it - in.begin()), wanted);
      return;
    }
    for (const rp::Equation& e : at.program.eqns) {
      const auto it = std::find(e.out.begin(), e.out.end(), a.var);
      if (it != e.out.end())
        follow_output(at, e, static_cast<std::size_t>(it - e.out.begin()), wanted);
    }
  }

 private:
  void follow_input(const Frame& at, std::size_t i, Verdict wanted) {
    if (at.outer == nullptr) return;  // an argument or a constant
    follow(*at.outer, at.call->in[at.first_operand + i], wanted);
    if (at.call->prim != &rp::scan_p) return;
    // A carry is what the step before returned.
    const rp::ScanShape s = rp::scan_shape(at.call->params);
    if (i >= s.consts && i < s.consts + s.carry) follow(at, at.program.out[i - s.consts], wanted);
  }

  // A slot for residuals of the branches that were not taken.
  static bool is_filler(const Frame& at, const rp::Equation& e) {
    if (e.prim == &rp::empty2_p) return true;
    if (e.prim != &rp::broadcast_in_dim_p || !e.in[0].is_var()) return false;
    return std::any_of(at.program.eqns.begin(), at.program.eqns.end(),
                       [&](const rp::Equation& maker) {
                         return maker.prim == &rp::empty2_p && maker.out[0] == e.in[0].var;
                       });
  }

  void follow_output(const Frame& at, const rp::Equation& e, std::size_t k, Verdict wanted) {
    if (e.prim == &rp::device_put_p) return follow(at, e.in[0], Verdict::offload);
    if (e.prim == &rp::reduce_precision_p) return follow(at, e.in[0], wanted);
    if (is_filler(at, e)) return;
    if (e.prim->kind == rp::Kind::call) {
      rp::for_each_program(e.params, [&](const rp::ProgramPtr& body) {
        const Frame inside{*body, &at, &e, e.prim == &rp::cond_p ? std::size_t{1} : 0};
        follow(inside, body->out[k], wanted);
      });
      return;
    }
    if (verdict(policy_, {at.program, e}) == wanted || !offence.empty()) return;
    offence = std::string(e.prim->name) + " " + to_string(at.program.type(e.out[k]));
  }

  const PolicyRecipe& policy_;
  std::set<std::tuple<const rp::Program*, rp::Var, const Frame*>> visited_;
};

// Empty if each residual of f is an argument, a constant, a literal, or was allowed by the policy.
template <class F>
std::string residual_offence(const F& f, const Arrays& args, const PolicyRecipe& policy) {
  const auto applied = rp::detail::inspect(f, {}, args);
  const auto forward = rp::detail::trace_forward(applied.callee(), applied.leaves());
  const rp::Program& p = *forward.traced.program;
  ResidualCheck check(policy);
  for (std::size_t k = forward.outputs; k < p.out.size(); ++k) {
    check.follow({p, nullptr, nullptr, 0}, p.out[k], Verdict::save);
  }
  return check.offence;
}

void collect_primitives(const rp::Program& p, std::set<std::string>& found) {
  for (const rp::Equation& e : p.eqns) {
    found.insert(e.prim->name);
    rp::for_each_program(e.params,
                         [&](const rp::ProgramPtr& body) { collect_primitives(*body, found); });
  }
}

// Sanitizers make each program forty times slower: most are small, some nest.
random_program::Options options_of(std::uint64_t seed) {
  return {.operations = seed % 2 == 0 ? 1 : 2, .depth = seed % 4 == 0 ? 2 : 1};
}
constexpr random_program::Options small{.operations = 1};
random_program::Options without_checkpoints(random_program::Options options) {
  options.checkpoints = false;
  return options;
}

// A number that depends on every derivative.
std::function<Array(Arrays)> slope_of(const std::function<Array(Arrays)>& f) {
  return [f](Arrays x) {
    Array sum = 0.0;
    for (const Array& g : rp::grad(f)(x)) sum = sum + rp::mean(rp::sin(g));
    return sum;
  };
}

// The function of its first argument, the others closed over.
std::function<Array(Array)> of_first(const RandomProgram& program) {
  return [program](Array x) {
    Arrays args = program.args;
    args[0] = x;
    return program.loss(args);
  };
}

}  // namespace

TEST_CASE("random programs are made of all kinds of operations") {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomProgram program = random_program::make(seed);
    collect_primitives(*rp::make_jaxpr(program.loss)(program.args).program(), found);
  }
  for (const char* primitive : {"remat2",
                                "scan",
                                "cond",
                                "while",
                                "jit",
                                "custom_jvp_call",
                                "custom_vjp_call",
                                "name",
                                "dot_general",
                                "gather",
                                "scatter-add",
                                "pad",
                                "concatenate",
                                "transpose",
                                "slice",
                                "reshape",
                                "broadcast_in_dim",
                                "sort",
                                "cumsum",
                                "reduce_sum",
                                "reduce_max",
                                "reduce_prod",
                                "select_n",
                                "gt",
                                "pow",
                                "erf",
                                "stop_gradient"}) {
    INFO(primitive);
    CHECK(found.count(primitive) == 1);
  }
}

TEST_CASE("the check of residuals sees what a policy lets through") {
  const RandomProgram program = random_program::make(0);
  const auto f =
      rp::checkpoint(program.loss, {.policy = rp::checkpoint_policies::everything_saveable});
  CHECK(residual_offence(f, program.args, {.kind = PolicyKind::everything}) == "");
  CHECK(residual_offence(f, program.args, {.kind = PolicyKind::nothing}) != "");
}

TEST_CASE("checkpointed random programs have the values and gradients of the plain ones") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, options_of(seed));
    const RandomProgram plain = random_program::make(seed, without_checkpoints(options_of(seed)));
    const auto [value, grads] = rp::value_and_grad(program.loss)(program.args);
    const auto [wanted, wanted_grads] = rp::value_and_grad(plain.loss)(plain.args);
    CHECK(same_bits(value, wanted));
    CHECK(distance(grads, wanted_grads) < 1e-12);
    const rp::RecomputeCheck check = rp::check_recompute(program.loss, program.args);
    CHECK_MESSAGE(check.ok, check);
    compared += check.compared;
    // Without a derivative: some primals are computed differently beside their tangents
    // (reduce_prod).
    if (seed % 4 == 0) CHECK(same_bits(program.loss(program.args), plain.loss(plain.args)));
  }
  CHECK(compared > 3000);
}

TEST_CASE("nothing is saved from a checkpointed random program that the policy does not allow") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RandomProgram program = random_program::make(seed, options_of(seed));
    const PolicyRecipe recipe = random_program::random_policy(seed);
    const rp::Policy policy = random_program::make_policy(recipe);
    INFO("seed " << seed << " policy " << policy);
    const auto f = rp::checkpoint(program.loss, {.policy = policy});
    CHECK(residual_offence(f, program.args, recipe) == "");
  }
}

TEST_CASE("random programs nested more deeply, in single precision") {
  const random_program::Options deep{.dtype = rp::float32, .operations = 2, .depth = 4};
  for (std::uint64_t seed = 1000; seed < 1010; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, deep);
    const RandomProgram plain = random_program::make(seed, without_checkpoints(deep));
    const auto [value, grads] = rp::value_and_grad(program.loss)(program.args);
    const auto [wanted, wanted_grads] = rp::value_and_grad(plain.loss)(plain.args);
    CHECK(same_bits(value, wanted));
    CHECK(distance(grads, wanted_grads) < 1e-5);
    const rp::RecomputeCheck check = rp::check_recompute(program.loss, program.args);
    CHECK_MESSAGE(check.ok, check);
  }
}

TEST_CASE("second derivatives of checkpointed random programs are those of the plain ones") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, small);
    const RandomProgram plain = random_program::make(seed, without_checkpoints(small));
    const auto [value, grads] = rp::value_and_grad(slope_of(program.loss))(program.args);
    const auto [wanted, wanted_grads] = rp::value_and_grad(slope_of(plain.loss))(plain.args);
    CHECK(std::abs(value.item<double>() - wanted.item<double>()) < 1e-12);
    CHECK(distance(grads, wanted_grads) < 1e-12);
  }
}

TEST_CASE("vmap of checkpointed random programs gives the values of a loop") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, small);
    const Array x = program.args[0], y = rp::cos(3.0 * x);
    const auto both = rp::value_and_grad(of_first(program));
    const auto [values, grads] = rp::vmap(both)(rp::stack({x, y}));
    const auto [value_x, grad_x] = both(x);
    const auto [value_y, grad_y] = both(y);
    CHECK(distance({values}, {rp::stack({value_x, value_y})}) < 1e-12);
    CHECK(distance({grads}, {rp::stack({grad_x, grad_y})}) < 1e-12);
  }
}

TEST_CASE("jit of checkpointed random programs gives the same numbers") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, small);
    const auto both = rp::value_and_grad(program.loss);
    const auto [value, grads] = both(program.args);
    const auto [jit_value, jit_grads] = rp::jit(both)(program.args);
    CHECK(distance({jit_value}, {value}) < 1e-12);
    CHECK(distance(jit_grads, grads) < 1e-11);
  }
}

TEST_CASE("a mapped random program equals the program row by row, evaluated and compiled") {
  for (std::uint64_t seed = 500; seed < 560; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program = random_program::make(seed, options_of(seed));
    Arrays stacked, values;
    for (const Array& a : program.args)
      stacked.push_back(rp::stack({a, -0.7 * a, rp::sin(3.0 * a)}));
    for (std::int64_t row = 0; row < 3; ++row) {
      Arrays args;
      for (const Array& a : stacked) args.push_back(a[row]);
      values.push_back(program.loss(args));
    }
    const Array wanted = rp::stack(values);
    CHECK(distance({rp::vmap(program.loss)(stacked)}, {wanted}) <= 1e-10);
    CHECK(distance({rp::jit(rp::vmap(program.loss))(stacked)}, {wanted}) <= 1e-10);
  }
}
