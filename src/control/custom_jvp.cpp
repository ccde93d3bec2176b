// custom_jvp_call: a function whose forward derivative the user wrote.
#include "control/body.h"
#include "control/custom_rules.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/jvp.h"
#include "transform/partial_eval.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <algorithm>

namespace reprise {
namespace {

const ProgramPtr& body_of(const Params& params) { return params.get<ProgramPtr>("call_jaxpr"); }

Types call_type(const Types& in, const Params& params) {
  check_operands("custom_jvp_call", *body_of(params), in);
  check_num_consts("custom_jvp_call", params, in.size());
  return body_of(params)->out_types();
}
Arrays call_eval(const Arrays& x, const Params& params, const Types&) {
  return eval(*body_of(params), x);
}

void check_rule_output(const char* rule, const Arrays& got, const Types& wanted) {
  bool match = got.size() == wanted.size();
  for (std::size_t i = 0; match && i < got.size(); ++i) {
    match = got[i].shape() == wanted[i].shape && got[i].dtype() == wanted[i].dtype;
  }
  if (match) return;
  Types types;
  for (const Array& a : got) types.push_back(a.type());
  fail<TypeError>("custom_jvp: the ", rule,
                  " of the rule must have the types of the function, got ", join(types, ", "),
                  " for ", join(wanted, ", "));
}

using RuleResult = std::pair<Arrays, Arrays>;

RuleResult run_here(const JvpRule& rule, const Arrays& x, const Arrays& dx) {
  const InUserCode user;
  return rule.run(x, dx);
}
// Inside a body the rule is a program of its own: its numbers are plain literals, not residuals.
RuleResult run_traced(const JvpRule& rule, const Arrays& x, const Arrays& dx) {
  Types types;
  for (const Array& a : concat(x, dx)) types.push_back(a.type());
  std::size_t outputs = 0;
  auto both = [&](const Arrays& a) {
    auto [y, dy] = rule.run(slice_of(a, 0, x.size()), slice_of(a, x.size(), a.size()));
    outputs = y.size();
    return concat(y, dy);
  };
  const Traced t = trace(both, types, {.transform = "custom_jvp", .body = true});
  const Arrays out = eval(*t.program, concat(t.consts, concat(x, dx)));
  return {slice_of(out, 0, outputs), slice_of(out, outputs, out.size())};
}

Duals call_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto rule = rule_of<JvpRule>("custom_jvp", params, "jvp");
  const std::size_t consts = num_consts(params);
  for (std::size_t i = 0; i < consts; ++i) {
    if (dx[i]) {
      fail_with_hint<TraceError>("pass the value as an argument of the function",
                                 "custom_jvp: a closed-over value has no derivative, got ",
                                 x[i].type());
    }
  }
  const Arrays args = slice_of(x, consts, x.size());
  Arrays tangents;
  for (std::size_t i = consts; i < x.size(); ++i) {
    tangents.push_back(dx[i] ? *dx[i] : instantiate_zeros(x[i].type()));
  }
  auto [y, dy] =
      in_derivation() ? run_traced(*rule, args, tangents) : run_here(*rule, args, tangents);
  const Types out = body_of(params)->out_types();
  check_rule_output("result", y, out);
  Types tangent_out;
  for (const Type& t : out) tangent_out.push_back(tangent_type(t));
  check_rule_output("tangent", dy, tangent_out);
  return {std::move(y), Tangents(dy.begin(), dy.end())};
}

// A call on tangents has no more use for its rule: its body is transposed in its place.
Tangents call_transpose(const Tangents& ct, const Primals& x, const Types& in,
                        const Params& params) {
  Tangents back = backward(*body_of(params), x, ct);
  Tangents result(in.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!x[i]) result[i] = std::move(back[next++]);
  }
  return result;
}

// The mapped call has a mapped rule.
Batched call_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params& params) {
  const auto rule = rule_of<JvpRule>("custom_jvp", params, "jvp");
  const std::size_t consts = num_consts(params);
  const auto b = batched_program(*body_of(params), axes, n, OutAxes::front,
                                 std::vector<bool>(body_of(params)->out.size(), true));
  const Types in = body_of(params)->in_types();
  const Axes arg_axes(axes.begin() + static_cast<std::ptrdiff_t>(consts), axes.end());
  auto run = [=](const Arrays& args, const Arrays& tangents) {
    Types types(in.begin() + static_cast<std::ptrdiff_t>(consts), in.end());
    const std::size_t count = types.size();
    for (std::size_t i = 0; i < count; ++i) types.push_back(tangent_type(types[i]));
    auto both = [&](const Arrays& a) {
      auto [y, dy] = rule->run(slice_of(a, 0, count), slice_of(a, count, a.size()));
      return concat(y, dy);
    };
    const Traced t = trace(both, types, {.transform = "vmap", .body = true});
    Axes all(t.consts.size());
    all.insert(all.end(), arg_axes.begin(), arg_axes.end());
    all.insert(all.end(), arg_axes.begin(), arg_axes.end());
    Batched mapped = vmap(*t.program, concat(t.consts, concat(args, tangents)), all, n);
    for (std::size_t k = 0; k < mapped.out.size(); ++k) {
      mapped.out[k] = axis_at(mapped.out[k], mapped.axes[k], 0, n);
    }
    const std::size_t half = mapped.out.size() / 2;
    return std::pair{slice_of(mapped.out, 0, half), slice_of(mapped.out, half, 2 * half)};
  };
  const Params mapped_params =
      params.with("call_jaxpr", b->program)
          .with("jvp", OpaquePtr(std::make_shared<const JvpRule>(rule->name, run)))
          .with("num_consts", static_cast<std::int64_t>(b->consts.size() + consts));
  return {custom_jvp_call_p.bind(concat(b->consts, x), mapped_params), b->out_axes};
}

// Before a loop the function is opened, as in JAX: its rule has been used.
void call_partial_eval(const Equation& e, Split& s) {
  const std::vector<bool> unknown = s.unknown_mask(e.in);
  const bool any = std::find(unknown.begin(), unknown.end(), true) != unknown.end();
  if (s.is_invariant() && any)
    s.split_opened(e, *e.params.get<ProgramPtr>("call_jaxpr"));
  else
    s.split_plain(e);
}

std::vector<Param> printed(const Params& params) {
  return in_order(params, {"name", "call_jaxpr", "jvp", "num_consts", "symbolic_zeros"});
}

constexpr ParamRule jvp_call_rules[] = {{"call_jaxpr", form::program},
                                        {"jvp", form::text | form::object, "jvp"},
                                        {"name", form::text, "f"},
                                        {"num_consts", form::integer, "0"},
                                        {"symbolic_zeros", form::flag, "False"}};

}  // namespace

constinit const Primitive custom_jvp_call_p{.name = "custom_jvp_call",
                                            .kind = Kind::call,
                                            .type = call_type,
                                            .eval = call_eval,
                                            .jvp = call_jvp,
                                            .transpose = call_transpose,
                                            .batch = call_batch,
                                            .partial_eval = call_partial_eval,
                                            .inlined_body = "call_jaxpr",
                                            .printed_params = printed,
                                            .param_rules = jvp_call_rules};

Arrays custom_jvp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const JvpRule> rule, const Arrays& args) {
  if (target_trace(args) == nullptr) {
    const InUserCode user;
    return f(args);
  }
  Types types;
  for (const Array& a : args) types.push_back(a.type());
  Traced t = trace(f, types, {.transform = "custom_jvp", .name = name, .body = true});
  const auto consts = static_cast<std::int64_t>(t.consts.size());
  return custom_jvp_call_p.bind(concat(t.consts, args), {{"name", name},
                                                         {"call_jaxpr", t.program},
                                                         {"jvp", OpaquePtr(std::move(rule))},
                                                         {"num_consts", consts},
                                                         {"symbolic_zeros", false}});
}

}  // namespace reprise
