// jit: a call of a named program.
//
//   linearize:  jit[f]: a -> b   =>   jit[f]: a -> (b, res)   and   jit[f]: (res, ȧ) -> ḃ
#include "control/call.h"

#include "control/body.h"
#include "control/contract.h"
#include "control/records.h"
#include "transform/dce.h"
#include "transform/forward.h"
#include "transform/inline.h"
#include "transform/jvp.h"
#include "transform/split_call.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <algorithm>

namespace reprise {
namespace {

// jit[name jaxpr] and closed_call[call_jaxpr] share all rules.
bool is_jit(const Params& params) { return params.find("name") != nullptr; }
const char* body_key(const Params& params) { return is_jit(params) ? "jaxpr" : "call_jaxpr"; }
const ProgramPtr& body_of(const Params& params) { return params.get<ProgramPtr>(body_key(params)); }
Arrays bind_call(const Params& params, const ProgramPtr& body, const Arrays& args) {
  const Primitive& prim = is_jit(params) ? jit_p : closed_call_p;
  return prim.bind(args, params.with(body_key(params), body));
}

Types jit_type(const Types& in, const Params& params) {
  check_operands("jit", *body_of(params), in);
  return body_of(params)->out_types();
}

Arrays jit_eval(const Arrays& x, const Params& params, const Types&) {
  return params.find(contracts) ? eval_contracted(*body_of(params), x) : eval(*body_of(params), x);
}

Duals jit_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto j = jvp_program(*body_of(params), nonzero_mask(dx));
  const Arrays args = concat(concat(j->consts, x), nonzero_only(dx));
  const Arrays out = bind_call(params, j->program, args);
  const std::size_t primals = j->nonzero_out.size();
  return {slice_of(out, 0, primals), spread(j->nonzero_out, out, primals)};
}

Duals jit_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  const Program& body = *body_of(params);
  const std::vector<bool> all(x.size(), true);
  const auto lin = linearize_program(body, nonzero_mask(dx), {}, all);
  const std::size_t consts = lin->consts.size();
  // Outputs that are arguments, and residuals that are outputs, are not returned.
  const auto known = derive<Forwarded>(*lin->known, "pruned", [&] {
    std::vector<bool> is_argument(consts, false);
    is_argument.resize(lin->known->in.size(), true);
    return forward_outputs(*lin->known, {0, body.out.size(), false, is_argument});
  });
  const Arrays kept = bind_call(params, known->program, concat(lin->consts, x));
  Arrays out;
  for (const OutputSource& from : known->from)
    out.push_back(from.is_input() ? x[from.index - consts] : kept[from.index]);
  Arrays linear_args;
  std::size_t next = body.out.size();
  for (const auto& input : lin->forwarded) linear_args.push_back(input ? x[*input] : out[next++]);
  const Arrays tangents = bind_call(params, lin->linear, concat(linear_args, nonzero_only(dx)));
  out.resize(body.out.size());
  return {std::move(out), spread(lin->nonzero, tangents)};
}

Tangents jit_transpose(const Tangents& ct, const Primals& x, const Types& in,
                       const Params& params) {
  std::vector<bool> is_linear;
  Arrays args;
  for (const auto& a : x) {
    is_linear.push_back(!a);
    if (a) args.push_back(*a);
  }
  const auto t = transposed_program(*body_of(params), is_linear, nonzero_mask(ct));
  args = concat(concat(t->consts, args), nonzero_only(ct));
  const Arrays back = bind_call(params, t->program, args);
  Tangents result(in.size());
  std::size_t k = 0, next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_linear[i] && t->nonzero[k++]) result[i] = back[next++];
  }
  return result;
}

Batched jit_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                  const Params& params) {
  const auto b = batched_program(*body_of(params), axes, n, OutAxes::natural);
  return {bind_call(params, b->program, concat(b->consts, x)), b->out_axes};
}

std::optional<Equation> jit_dce(const Program&, const Equation& e, const std::vector<bool>& used) {
  const auto live = dce_body(body_of(e.params), used);
  Equation shrunk = with_only(e, live.used_inputs, used);
  shrunk.params = e.params.with(body_key(e.params), live.program);
  return shrunk;
}

void call_partial_eval(const Equation& e, Split& s) {
  if (s.is_invariant() && e.prim == &jit_p) {
    const std::vector<bool> varying = s.unknown_mask(e.in);
    const bool any = std::find(varying.begin(), varying.end(), true) != varying.end();
    return any ? split_invariant_call(e, s, body_key(e.params)) : s.split_plain(e);
  }
  split_call(e, s, {.body = body_key(e.params), .forward = true});
}

std::vector<Param> jit_printed(const Params& params) {
  return {{"name", params.get<std::string>("name")}, {"jaxpr", body_of(params)}};
}

constexpr ParamRule jit_rules[] = {{"jaxpr", form::program}, {"name", form::text, "f"}};
constexpr ParamRule closed_call_rules[] = {{"call_jaxpr", form::program}};

}  // namespace

constinit const Primitive jit_p{.name = "jit",
                                .kind = Kind::call,
                                .type = jit_type,
                                .eval = jit_eval,
                                .jvp = jit_jvp,
                                .linearize = jit_linearize,
                                .transpose = jit_transpose,
                                .batch = jit_batch,
                                .partial_eval = call_partial_eval,
                                .dce = jit_dce,
                                .inlined_body = "jaxpr",
                                .printed_params = jit_printed,
                                .param_rules = jit_rules};
constinit const Primitive closed_call_p{.name = "closed_call",
                                        .kind = Kind::call,
                                        .type = jit_type,
                                        .eval = jit_eval,
                                        .jvp = jit_jvp,
                                        .linearize = jit_linearize,
                                        .transpose = jit_transpose,
                                        .batch = jit_batch,
                                        .partial_eval = call_partial_eval,
                                        .dce = jit_dce,
                                        .inlined_body = "call_jaxpr",
                                        .param_rules = closed_call_rules};

// The same by another name, in programs of newer JAX: its transforms make closed_call of it.
constinit const Primitive eval_jaxpr_p{.name = "eval_jaxpr",
                                       .kind = Kind::call,
                                       .type = jit_type,
                                       .eval = jit_eval,
                                       .jvp = jit_jvp,
                                       .linearize = jit_linearize,
                                       .transpose = jit_transpose,
                                       .batch = jit_batch,
                                       .partial_eval = call_partial_eval,
                                       .dce = jit_dce,
                                       .inlined_body = "call_jaxpr",
                                       .param_rules = closed_call_rules};

namespace {
// C++ numbers next to f64 operands are passed as f64: an f32 argument would round them.
Arrays with_wide_numbers(Arrays args) {
  const bool is_wide =
      std::any_of(args.begin(), args.end(), [](const Array& a) { return a.dtype() == Dtype::f64; });
  for (Array& a : args) {
    if (!is_wide || !content(a).number() || a.type() != Type{Dtype::f32, {}, true}) continue;
    a = make_number(convert_literal(*content(a).number(), Dtype::f64, true));
  }
  return args;
}
}  // namespace

namespace {
// One jit equation of f as a program, or its result when nothing is traced.
Arrays bind_function(const std::string& name, const FlatFunction& f, const Arrays& given,
                     Params params) {
  const Arrays args = with_wide_numbers(given);
  Types types;
  for (const Array& a : args) types.push_back(a.type());
  const Location at = user_location();
  // A library function: its equations carry the place where the user called it.
  auto located = [&](const Arrays& x) {
    const AtEquation scope(at);
    return f(x);
  };
  Traced t = trace(located, types, {.transform = "jit", .name = name, .body = true});
  t.program = intern("jit:" + name, std::move(t.program));
  return jit_p.bind(concat(t.consts, args), params.with("name", name).with("jaxpr", t.program));
}
}  // namespace

Arrays jit_call(const std::string& name, const FlatFunction& f, const Arrays& args) {
  if (target_trace(args) == nullptr) return f(args);
  return bind_function(name, f, args, {});
}
Array contracting_call(const std::string& name, const FlatFunction& f, const Arrays& args) {
  return bind_function(name, f, args, {{contracts, true}})[0];
}

}  // namespace reprise
