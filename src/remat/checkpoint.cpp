#include "remat/checkpoint.h"

#include "base/float_format.h"
#include "control/body.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "remat/open.h"
#include "remat/within_budget.h"
#include "transform/dce.h"
#include "transform/inline.h"
#include "transform/jvp.h"
#include "transform/split_call.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {
namespace {

const ProgramPtr& body_of(const Params& params) { return params.get<ProgramPtr>("jaxpr"); }

// prevent_cse with other operands: `keep` of the old flags, `before` and `after` more that are set.
Attr updated_flags(const Params& params, std::size_t before, const std::vector<bool>& keep,
                   std::size_t after) {
  const Attr& attr = *params.find("prevent_cse");
  if (std::holds_alternative<bool>(attr)) return attr;
  const std::vector<bool>& old = params.get_opaque<FlagsParam>("prevent_cse")->flags;
  std::vector<bool> flags(before, true);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) flags.push_back(i < old.size() ? old[i] : true);
  }
  flags.insert(flags.end(), after, true);
  return OpaquePtr(std::make_shared<const FlagsParam>(std::move(flags)));
}

Types remat_type(const Types& in, const Params& params) {
  check_operands("checkpoint", *body_of(params), in);
  return body_of(params)->out_types();
}
Arrays remat_eval(const Arrays& x, const Params& params, const Types&) {
  return eval(*body_of(params), x);
}

// A policy whose text says too little stays a text, and only using it fails.
Params remat_parsed(const Params& printed, const Types&, const Types&) {
  Params params = printed;
  const Attr* policy = printed.find("policy");
  if (const auto* text = policy ? std::get_if<std::string>(policy) : nullptr) {
    if (auto known = policy_from_repr(*text)) {
      params =
          params.with("policy", OpaquePtr(std::make_shared<const PolicyParam>(*std::move(known))));
    }
  }
  const Attr* flags = printed.find("prevent_cse");
  if (const auto* text = flags ? std::get_if<std::string>(flags) : nullptr) {
    if (auto known = parse_flags(*text)) {
      params = params.with("prevent_cse",
                           OpaquePtr(std::make_shared<const FlagsParam>(*std::move(known))));
    }
  }
  return params;
}

// --------------------------------------------------------------------------------------- splitting
// A residual that the forward pass also reads is rounded to its dtype where it is made, so that
// both passes see the same bits whatever precision a compiler works in.
Program with_precision_barriers(Program p, std::size_t residuals) {
  std::vector<bool> read(p.types.size());
  std::unordered_map<Var, std::size_t> made_by;
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    for (const Atom& a : p.eqns[i].in) {
      if (a.is_var()) read[static_cast<std::size_t>(a.var)] = true;
    }
    for (Var v : p.eqns[i].out) made_by[v] = i;
  }
  std::vector<std::vector<Equation>> after(p.eqns.size());
  for (std::size_t k = p.out.size() - residuals; k < p.out.size(); ++k) {
    const Var v = p.out[k].var;
    const Type type = p.type(v);
    const auto producer = made_by.find(v);
    if (!is_floating(type.dtype) || !read[static_cast<std::size_t>(v)] || producer == made_by.end())
      continue;
    Equation& e = p.eqns[producer->second];
    const FloatFormat format = float_format(type.dtype);
    const Params params{{"exponent_bits", std::int64_t{format.exponent_bits}},
                        {"mantissa_bits", std::int64_t{format.mantissa_bits}}};
    if (e.prim == &reduce_precision_p && e.params == params) continue;
    const Var raw = p.fresh(type);
    std::replace(e.out.begin(), e.out.end(), v, raw);
    after[producer->second].push_back(
        {&reduce_precision_p, params, {Atom::of(raw)}, {v}, e.at, e.phase});
  }
  std::vector<Equation> eqns;
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    eqns.push_back(std::move(p.eqns[i]));
    // Inserted right behind the producer, the latest first.
    for (std::size_t k = after[i].size(); k-- > 0;) eqns.push_back(std::move(after[i][k]));
  }
  p.eqns = std::move(eqns);
  return p;
}

struct RematSplit {
  ProgramPtr known;   // known inputs -> known outputs, residuals
  ProgramPtr staged;  // residuals, used inputs -> unknown outputs; null: the program itself
  std::size_t residuals = 0;
  std::vector<bool> used_inputs;  // by the staged part
  std::vector<bool> unknown_out;
};

// Splitting what is staged already changes nothing: no output is known, and the policy lets nothing
// through.
bool is_staged(const Program& p, const PolicySplit& parts) {
  const bool all_unknown =
      std::all_of(parts.unknown_out.begin(), parts.unknown_out.end(), [](bool u) { return u; });
  return all_unknown && parts.residuals == 0 && is_live(p) && same_structure(parts.staged, p);
}

RematSplit make_checkpoint_split(const Program& p, const std::vector<bool>& unknown,
                                 const SplitPolicy& policy) {
  PolicySplit parts =
      split(p, unknown, std::vector<bool>(p.in.size(), true), policy, SplitMode::by_policy);
  RematSplit result;
  result.unknown_out = parts.unknown_out;
  if (is_staged(p, parts)) {
    parts.known.eqns.clear();
    result.known = std::make_shared<const Program>(std::move(parts.known));
    result.used_inputs.assign(p.in.size(), true);
    return result;
  }
  std::vector<bool> wanted;
  for (std::size_t k = 0; k < p.out.size(); ++k) {
    if (parts.available_out[k]) wanted.push_back(parts.unknown_out[k]);
  }
  // Residual reports tell by these names what the policy let through from what was there anyway.
  parts.staged.arg_names.assign(parts.residuals, saved_by_policy);
  parts.staged.arg_names.resize(parts.staged.in.size(), "");
  DceProgram staged = dce(parts.staged, wanted);
  const auto first_input =
      staged.used_inputs.begin() + static_cast<std::ptrdiff_t>(parts.residuals);
  std::vector<bool> known_out(parts.known.out.size() - parts.residuals, true);
  known_out.insert(known_out.end(), staged.used_inputs.begin(), first_input);
  result.used_inputs.assign(first_input, staged.used_inputs.end());
  result.residuals =
      static_cast<std::size_t>(std::count(staged.used_inputs.begin(), first_input, true));
  result.staged =
      as_live(keep_inputs(std::move(staged), [](std::size_t, bool used) { return used; }));
  result.known = std::make_shared<const Program>(
      with_precision_barriers(dce(parts.known, known_out).program, result.residuals));
  return result;
}

// A budget is shared by all values of the body, those of calls inside it too.
RematSplit make_checkpoint_split(const Program& p, const std::vector<bool>& unknown,
                                 const Policy& policy) {
  const auto budget = budget_of(policy);
  if (!budget) return make_checkpoint_split(p, unknown, split_policy(policy));
  const Program flat = open_checkpoints(inline_calls(p));
  return make_checkpoint_split(flat, unknown, saving_within(flat, unknown, *budget));
}

std::shared_ptr<const RematSplit> split_checkpoint(const Program& p,
                                                   const std::vector<bool>& unknown,
                                                   const Policy& policy) {
  return derive<RematSplit>(p, mask_key("remat:" + policy.key(), unknown),
                            [&] { return make_checkpoint_split(p, unknown, policy); });
}

// Of the checkpoint with the program `split` was made of.
Params staged_params(const Params& params, const ProgramPtr& split, const RematSplit& parts) {
  return params.with("jaxpr", parts.staged ? parts.staged : split)
      .with("differentiated", true)
      .with("prevent_cse", updated_flags(params, parts.residuals, parts.used_inputs, 0));
}

// ------------------------------------------------------------------------------------------- rules
Duals remat_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto j = jvp_program(*body_of(params), nonzero_mask(dx));
  const Arrays tangents = nonzero_only(dx);
  const Arrays args = concat(concat(j->consts, x), tangents);
  const Attr flags = updated_flags(params, 0, std::vector<bool>(x.size(), true), tangents.size());
  const Arrays out =
      remat_p.bind(args, params.with("jaxpr", j->program).with("prevent_cse", flags));
  const std::size_t primals = j->nonzero_out.size();
  return {slice_of(out, 0, primals), spread(j->nonzero_out, out, primals)};
}

Duals remat_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto j = jvp_program(*body_of(params), nonzero_mask(dx));
  const Arrays tangents = nonzero_only(dx);
  const Arrays known = concat(j->consts, x);
  const Arrays args = concat(known, tangents);
  std::vector<bool> unknown(known.size(), false);
  unknown.resize(args.size(), true);
  const auto parts = split_checkpoint(*j->program, unknown, policy_of(params));
  const Arrays computed = eval(*parts->known, known);
  const std::size_t known_outputs = computed.size() - parts->residuals;
  Arrays staged_args = slice_of(computed, known_outputs, computed.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (parts->used_inputs[i]) staged_args.push_back(args[i]);
  }
  Arrays staged;
  const auto& unknown_out = parts->unknown_out;
  const bool any_unknown =
      std::find(unknown_out.begin(), unknown_out.end(), true) != unknown_out.end();
  if (any_unknown) staged = remat_p.bind(staged_args, staged_params(params, j->program, *parts));
  Arrays all;
  std::size_t next_known = 0, next_staged = 0;
  for (bool is_unknown : unknown_out) {
    all.push_back(is_unknown ? staged[next_staged++] : computed[next_known++]);
  }
  const std::size_t primals = j->nonzero_out.size();
  return {slice_of(all, 0, primals), spread(j->nonzero_out, all, primals)};
}

struct TransposedRemat {
  ProgramPtr program;
  Arrays consts;
  std::vector<bool> nonzero;
};

// The transposed body knows which of its inputs the policy saved, as the body did.
ProgramPtr with_saved_names(const Program& body, const std::vector<bool>& linear,
                            const Traced& transposed) {
  Program named = *transposed.program;
  named.arg_names.assign(named.in.size(), "");
  std::size_t next = transposed.consts.size();
  for (std::size_t i = 0; i < body.in.size(); ++i) {
    if (linear[i]) continue;
    if (i < body.arg_names.size()) named.arg_names[next] = body.arg_names[i];
    ++next;
  }
  return std::make_shared<const Program>(std::move(named));
}

// The recomputation in order, then the transposed linear part.
TransposedRemat make_transpose(const Program& body, const std::vector<bool>& linear,
                               const std::vector<bool>& given) {
  const auto parts = unzip(body, linear);
  Types in;
  const Types inputs = body.in_types(), outputs = body.out_types();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!linear[i]) in.push_back(inputs[i]);
  }
  const std::size_t known = in.size();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (given[k]) in.push_back(outputs[k]);
  }
  TransposedRemat result;
  auto transposed = [&](const Arrays& args) {
    Arrays computed;
    {
      const InPhase scope(Phase::recompute);
      computed = eval(*parts->known, slice_of(args, 0, known));
    }
    std::size_t first_residual = 0, next = known;
    Tangents cts;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Tangent ct = given[k] ? Tangent(args[next++]) : std::nullopt;
      if (parts->unknown_out[k])
        cts.push_back(ct);
      else
        ++first_residual;
    }
    Primals x(computed.begin() + static_cast<std::ptrdiff_t>(first_residual), computed.end());
    x.resize(parts->linear->in.size());
    Arrays out;
    for (const Tangent& t : backward(*parts->linear, std::move(x), std::move(cts))) {
      result.nonzero.push_back(t.has_value());
      if (t) out.push_back(*t);
    }
    return out;
  };
  Traced traced =
      trace(transposed, in, {.transform = "transpose", .name = body.name, .body = true});
  result.program = with_saved_names(body, linear, std::move(traced));
  result.consts = std::move(traced.consts);
  return result;
}

Tangents remat_transpose(const Tangents& ct, const Primals& x, const Types& in,
                         const Params& params) {
  std::vector<bool> linear, known;
  Arrays args;
  for (const auto& a : x) {
    linear.push_back(!a);
    known.push_back(a.has_value());
    if (a) args.push_back(*a);
  }
  const std::vector<bool> given = nonzero_mask(ct);
  const Program& body = *body_of(params);
  const std::string key = mask_key("remat_transpose", linear) + mask_key("/", given);
  const auto t =
      derive<TransposedRemat>(body, key, [&] { return make_transpose(body, linear, given); });
  const Arrays cts = nonzero_only(ct);
  const Attr flags = updated_flags(params, 0, known, cts.size());
  const Arrays back = remat_p.bind(concat(concat(t->consts, args), cts),
                                   params.with("jaxpr", t->program).with("prevent_cse", flags));
  Tangents result(in.size());
  std::size_t k = 0, next = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (linear[i] && t->nonzero[k++]) result[i] = back[next++];
  }
  return result;
}

Batched remat_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  const auto b = batched_program(*body_of(params), axes, n, OutAxes::front);
  return {remat_p.bind(concat(b->consts, x), params.with("jaxpr", b->program)), b->out_axes};
}

std::optional<Equation> remat_dce(const Program&, const Equation& e,
                                  const std::vector<bool>& used) {
  const auto live = dce_body(body_of(e.params), used);
  Equation shrunk = with_only(e, live.used_inputs, used);
  shrunk.params = e.params.with("jaxpr", live.program)
                      .with("prevent_cse", updated_flags(e.params, 0, live.used_inputs, 0));
  return shrunk;
}

void adjust_split(const std::vector<bool>& unknown, const std::vector<bool>& available,
                  Params& known, Params& staged) {
  std::vector<bool> is_known = unknown;
  is_known.flip();
  const Params old = known;
  known = known.with("prevent_cse", updated_flags(old, 0, is_known, 0));
  staged =
      staged.with("differentiated", true).with("prevent_cse", updated_flags(old, 0, available, 0));
}

// Where nothing is repeated, a nested checkpoint is split by its own policy; its known part, which
// may be all of it, runs inline.
void split_checkpoint_inline(const Equation& e, Split& s) {
  const std::vector<bool> unknown = s.unknown_mask(e.in);
  const auto parts = split_checkpoint(*body_of(e.params), unknown, policy_of(e.params));
  std::vector<Atom> args;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!unknown[i]) args.push_back(e.in[i]);
  }
  const std::vector<Atom> known = s.splice_known(*parts->known, args);
  std::size_t out = 0;
  Equation staged = e;
  staged.params = staged_params(e.params, body_of(e.params), *parts);
  staged.in.clear();
  staged.out.clear();
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (parts->unknown_out[k]) {
      staged.out.push_back(e.out[k]);
    } else {
      s.alias(e.out[k], known[out++]);
    }
  }
  for (std::size_t r = 0; r < parts->residuals; ++r) staged.in.push_back(known[out + r]);
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (parts->used_inputs[i]) staged.in.push_back(e.in[i]);
  }
  if (!staged.out.empty()) s.add_staged(std::move(staged));
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (parts->unknown_out[k]) s.set(e.out[k], true, true);
  }
}

void remat_partial_eval(const Equation& e, Split& s) {
  if (s.is_by_policy())
    split_call(e, s, {.body = "jaxpr", .adjust = adjust_split});
  else
    split_checkpoint_inline(e, s);
}

}  // namespace

std::string FlagsParam::text() const {
  std::vector<std::string> items;
  for (bool f : flags) items.emplace_back(f ? "True" : "False");
  return "(" + join(items, ", ") + (items.size() == 1 ? ",)" : ")");
}

Policy policy_of(const Params& params) {
  const Attr* attr = params.find("policy");
  if (attr == nullptr || std::holds_alternative<None>(*attr)) return {};
  if (const auto* text = std::get_if<std::string>(attr)) {
    fail<TypeError>("checkpoint: the text of the program does not tell what its policy saves, got ",
                    *text);
  }
  return params.get_opaque<PolicyParam>("policy")->policy;
}

EquationInfo describe(const Program& p, const Equation& e, const OutputNames& names) {
  EquationInfo info;
  info.primitive = e.prim->name;
  for (const Atom& a : e.in) info.inputs.push_back(p.type(a));
  for (Var v : e.out) info.outputs.push_back(p.type(v));
  info.output_names = names;
  if (e.prim == &name_p) info.name = e.params.get<std::string>("name");
  if (e.prim == &dot_general_p) {
    info.has_batch_dims = !e.params.get<DotDims>("dimension_numbers").lhs_batch.empty();
  }
  for (const Param& param : e.params.items())
    info.params.emplace_back(param.key, python_text(param.value));
  return info;
}

namespace {

Offload checked(const Offloadable& o) {
  if (o.src != "device" || (o.dst != "pinned_host" && o.dst != "unpinned_host")) {
    fail<TypeError>("checkpoint: a policy can offload from 'device' to 'pinned_host', got '", o.src,
                    "' to '", o.dst, "'");
  }
  return {o.src, o.dst};
}

}  // namespace

SplitPolicy split_policy(const Policy& policy) {
  auto decide = [policy](const Program& p, const Equation& e,
                         const OutputNames& names) -> SplitDecision {
    const Policy::Answer answer = policy(describe(p, e, names));
    if (std::holds_alternative<Saveable>(answer)) return Keep{};
    if (const auto* o = std::get_if<Offloadable>(&answer)) return checked(*o);
    return Repeat{};
  };
  return {decide, policy.key()};
}

namespace {

constexpr ParamRule remat_rules[] = {{"differentiated", form::flag, "False"},
                                     {"jaxpr", form::program},
                                     {"policy", form::none | form::text | form::object, "None"},
                                     {"prevent_cse", form::flag | form::object, "True"}};

}  // namespace

constinit const Primitive remat_p{.name = "remat2",
                                  .kind = Kind::call,
                                  .type = remat_type,
                                  .eval = remat_eval,
                                  .jvp = remat_jvp,
                                  .linearize = remat_linearize,
                                  .transpose = remat_transpose,
                                  .batch = remat_batch,
                                  .partial_eval = remat_partial_eval,
                                  .dce = remat_dce,
                                  .param_rules = remat_rules,
                                  .parsed_params = remat_parsed};

}  // namespace reprise
