// custom_vjp_call: a function whose backward pass the user wrote.
//
//   differentiated:  x -> fwd -> (y, res)      custom_lin: (res, ẋ) -> ẏ, which only transposes:
//   transposed:      (res, ȳ) -> bwd -> x̄
#include "control/body.h"
#include "control/custom_rules.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/jvp.h"
#include "transform/partial_eval.h"
#include "transform/vmap.h"

#include <algorithm>
#include <mutex>

namespace reprise {
namespace {

const ProgramPtr& body_of(const Params& params) { return params.get<ProgramPtr>("call_jaxpr"); }

// Output types of custom_lin; not printed.
struct TypesParam : OpaqueParam {
  explicit TypesParam(Types t) : types(std::move(t)) {}
  Types types;
  std::string text() const override { return "[" + join(types, ", ") + "]"; }
  bool equal(const OpaqueParam& other) const override {
    return types == static_cast<const TypesParam&>(other).types;
  }
};
struct BoolsParam : OpaqueParam {
  explicit BoolsParam(std::vector<bool> v) : values(std::move(v)) {}
  std::vector<bool> values;
  std::string text() const override {
    std::vector<std::string> items;
    for (bool b : values) items.emplace_back(b ? "True" : "False");
    return "[" + join(items, ", ") + "]";
  }
};

Types call_type(const Types& in, const Params& params) {
  check_operands("custom_vjp_call", *body_of(params), in);
  check_num_consts("custom_vjp_call", params, in.size());
  return body_of(params)->out_types();
}
Arrays call_eval(const Arrays& x, const Params& params, const Types&) {
  return eval(*body_of(params), x);
}

Duals call_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto fwd = rule_of<FwdRule>("custom_vjp", params, "fwd");
  const std::size_t consts = num_consts(params);
  for (std::size_t i = 0; i < consts; ++i) {
    if (dx[i]) {
      fail_with_hint<TraceError>("pass the value as an argument of the function",
                                 "custom_vjp: a closed-over value has no derivative, got ",
                                 x[i].type());
    }
  }
  auto [y, residuals] = [&] {
    const InUserCode user;
    return fwd->run(slice_of(x, consts, x.size()));
  }();
  const Types out = body_of(params)->out_types();
  if (y.size() != out.size()) {
    fail<TypeError>("custom_vjp: fwd must return the outputs of the function first, got ", y.size(),
                    " outputs for ", out.size());
  }
  std::vector<bool> zeros;
  Types tangent_out;
  for (std::size_t i = consts; i < x.size(); ++i) zeros.push_back(!dx[i]);
  for (const Type& t : out) tangent_out.push_back(tangent_type(t));
  Arrays args = concat(residuals, nonzero_only(dx));
  const Arrays tangents = custom_lin_p.bind(
      args, {{"bwd", *params.find("bwd")},
             {"in_zeros", OpaquePtr(std::make_shared<const BoolsParam>(zeros))},
             {"num_res", static_cast<std::int64_t>(residuals.size())},
             {"out_avals", OpaquePtr(std::make_shared<const TypesParam>(tangent_out))},
             {"symbolic_zeros", false}});
  return {std::move(y), Tangents(tangents.begin(), tangents.end())};
}

Types lin_type(const Types& in, const Params& params) {
  const auto residuals = params.get<std::int64_t>("num_res");
  const std::vector<bool>& zeros = params.get_opaque<BoolsParam>("in_zeros")->values;
  const auto tangents = std::count(zeros.begin(), zeros.end(), false);
  if (residuals < 0 || residuals + tangents != static_cast<std::int64_t>(in.size())) {
    fail<TypeError>("custom_lin: the operands must be the residuals and the tangents, got ",
                    in.size(), " for ", residuals, " and ", tangents);
  }
  return params.get_opaque<TypesParam>("out_avals")->types;
}
Arrays lin_eval(const Arrays&, const Params&, const Types&) {
  fail_with_hint<TypeError>(
      "use grad or vjp, or give the function a custom_jvp rule",
      "custom_vjp: forward-mode differentiation is not possible, got jvp of a "
      "function with custom_vjp");
}

Tangents lin_transpose(const Tangents& ct, const Primals& x, const Types& in,
                       const Params& params) {
  const auto bwd = rule_of<BwdRule>("custom_vjp", params, "bwd");
  const auto residual_count = static_cast<std::size_t>(params.get<std::int64_t>("num_res"));
  const std::vector<bool>& zeros = params.get_opaque<BoolsParam>("in_zeros")->values;
  const Types& out = params.get_opaque<TypesParam>("out_avals")->types;
  Arrays residuals, cts;
  for (std::size_t i = 0; i < residual_count; ++i) residuals.push_back(*x[i]);
  for (std::size_t k = 0; k < ct.size(); ++k) cts.push_back(ct[k] ? *ct[k] : lax::zeros(out[k]));
  const Arrays back = [&] {
    const InUserCode user;
    return bwd->run(residuals, cts);
  }();
  if (back.size() != zeros.size()) {
    fail<TypeError>("custom_vjp: bwd must return one cotangent per argument, got ", back.size(),
                    " for ", zeros.size());
  }
  Tangents result(in.size());
  std::size_t linear = residual_count;
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    if (zeros[i]) continue;
    const Type& wanted = in[linear];
    if (back[i].shape() != wanted.shape || back[i].dtype() != wanted.dtype) {
      fail<TypeError>("custom_vjp: the cotangent must have the type of its argument, got ",
                      back[i].type(), " for ", wanted);
    }
    result[linear++] = back[i];
  }
  return result;
}

// Runs a rule on unmapped types and maps the program it records.
Batched run_mapped(const FlatFunction& f, const Types& types, const Arrays& args, const Axes& axes,
                   std::int64_t n) {
  const Traced t = trace(f, types, {.transform = "vmap", .body = true});
  Axes all(t.consts.size());
  all.insert(all.end(), axes.begin(), axes.end());
  return vmap(*t.program, concat(t.consts, args), all, n);
}
Types unmapped_types(const Arrays& xs, const Axes& axes) {
  Types types;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    types.push_back(xs[i].type());
    if (axes[i]) types.back().shape.erase(types.back().shape.begin() + *axes[i]);
  }
  return types;
}

// The mapped axes of the residuals: known when a mapped fwd has run, needed by bwd.
class ResidualAxes {
 public:
  void set(Axes axes) {
    const std::lock_guard lock(mutex_);
    axes_ = std::move(axes);
  }
  Axes get() const {
    const std::lock_guard lock(mutex_);
    return axes_;
  }

 private:
  mutable std::mutex mutex_;
  Axes axes_;
};

Batched call_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params& params) {
  const auto fwd = rule_of<FwdRule>("custom_vjp", params, "fwd");
  const auto bwd = rule_of<BwdRule>("custom_vjp", params, "bwd");
  const std::size_t consts = num_consts(params), outputs = body_of(params)->out.size();
  const auto b =
      batched_program(*body_of(params), axes, n, OutAxes::front, std::vector<bool>(outputs, true));
  const Axes arg_axes(axes.begin() + static_cast<std::ptrdiff_t>(consts), axes.end());
  Types in = body_of(params)->in_types();
  in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(consts));
  auto residual_axes = std::make_shared<ResidualAxes>();
  auto run_fwd = [=](const Arrays& args) {
    auto both = [&](const Arrays& a) {
      auto [y, residuals] = fwd->run(a);
      return concat(y, residuals);
    };
    Batched y = run_mapped(both, in, args, arg_axes, n);
    for (std::size_t k = 0; k < outputs; ++k) y.out[k] = axis_at(y.out[k], y.axes[k], 0, n);
    residual_axes->set({y.axes.begin() + static_cast<std::ptrdiff_t>(outputs), y.axes.end()});
    return std::pair{slice_of(y.out, 0, outputs), slice_of(y.out, outputs, y.out.size())};
  };
  auto run_bwd = [=](const Arrays& residuals, const Arrays& cts) {
    const std::size_t split = residuals.size();
    auto both = [&](const Arrays& a) {
      return bwd->run(slice_of(a, 0, split), slice_of(a, split, a.size()));
    };
    const Arrays args = concat(residuals, cts);
    Axes mapped = residual_axes->get();
    mapped.resize(args.size(), Axis(0));  // cotangents
    Batched back = run_mapped(both, unmapped_types(args, mapped), args, mapped, n);
    // an argument shared by all collects the sum
    for (std::size_t i = 0; i < back.out.size(); ++i) {
      Array& ct = back.out[i];
      if (!is_floating(ct.dtype())) continue;
      ct = axis_at(ct, back.axes[i], arg_axes[i].value_or(0), n);
      if (!arg_axes[i]) ct = lax::reduce_sum(ct, {0});
    }
    return back.out;
  };
  const Params mapped =
      params.with("call_jaxpr", b->program)
          .with("fwd", OpaquePtr(std::make_shared<const FwdRule>(fwd->name, run_fwd)))
          .with("bwd", OpaquePtr(std::make_shared<const BwdRule>(bwd->name, run_bwd)))
          .with("num_consts", static_cast<std::int64_t>(b->consts.size() + consts));
  return {custom_vjp_call_p.bind(concat(b->consts, x), mapped), b->out_axes};
}

// Before a loop that it does not read anything of, it leaves an empty call, as in JAX.
void call_partial_eval(const Equation& e, Split& s) {
  const std::vector<bool> unknown = s.unknown_mask(e.in);
  const bool all = std::find(unknown.begin(), unknown.end(), false) == unknown.end();
  if (s.is_invariant() && all && !e.in.empty()) {
    const Params nothing = e.params.with("call_jaxpr", std::make_shared<const Program>());
    s.add_known({e.prim, nothing, {}, {}, e.at, e.phase});
  }
  s.split_plain(e);
}

std::vector<Param> printed_call(const Params& params) {
  return in_order(params, {"name", "bwd", "call_jaxpr", "fwd", "num_consts", "symbolic_zeros"});
}
std::vector<Param> printed_lin(const Params& params) {
  std::vector<Param> out;
  for (const Param& p : params.items()) {
    if (std::string_view(p.key) != "out_avals") out.push_back(p);
  }
  return out;
}
Params parsed_lin(const Params& printed, const Types&, const Types& out) {
  const std::optional<std::vector<bool>> zeros = parse_flags(printed.get<std::string>("in_zeros"));
  if (!zeros) {
    fail<TypeError>("custom_lin: in_zeros must be a list of flags, got ",
                    printed.get<std::string>("in_zeros"));
  }
  return printed.with("out_avals", OpaquePtr(std::make_shared<const TypesParam>(out)))
      .with("in_zeros", OpaquePtr(std::make_shared<const BoolsParam>(*zeros)));
}

constexpr ParamRule vjp_call_rules[] = {
    {"bwd", form::text | form::object, "bwd"}, {"call_jaxpr", form::program},
    {"fwd", form::text | form::object, "fwd"}, {"name", form::text, "f"},
    {"num_consts", form::integer, "0"},        {"symbolic_zeros", form::flag, "False"}};
constexpr ParamRule lin_rules[] = {{"bwd", form::text | form::object, "bwd"},
                                   {"in_zeros", form::object},
                                   {"num_res", form::integer},
                                   {"out_avals", form::object, completed},
                                   {"symbolic_zeros", form::flag, "False"}};

}  // namespace

constinit const Primitive custom_vjp_call_p{.name = "custom_vjp_call",
                                            .kind = Kind::call,
                                            .type = call_type,
                                            .eval = call_eval,
                                            .jvp = call_jvp,
                                            .batch = call_batch,
                                            .partial_eval = call_partial_eval,
                                            .inlined_body = "call_jaxpr",
                                            .printed_params = printed_call,
                                            .param_rules = vjp_call_rules};
constinit const Primitive custom_lin_p{.name = "custom_lin",
                                       .kind = Kind::call,
                                       .type = lin_type,
                                       .eval = lin_eval,
                                       .transpose = lin_transpose,
                                       .printed_params = printed_lin,
                                       .param_rules = lin_rules,
                                       .parsed_params = parsed_lin};

Arrays custom_vjp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const FwdRule> fwd, std::shared_ptr<const BwdRule> bwd,
                       const Arrays& args) {
  if (target_trace(args) == nullptr) {
    const InUserCode user;
    return f(args);
  }
  Types types;
  for (const Array& a : args) types.push_back(a.type());
  Traced t = trace(f, types, {.transform = "custom_vjp", .name = name, .body = true});
  const auto consts = static_cast<std::int64_t>(t.consts.size());
  return custom_vjp_call_p.bind(concat(t.consts, args), {{"name", name},
                                                         {"bwd", OpaquePtr(std::move(bwd))},
                                                         {"call_jaxpr", t.program},
                                                         {"fwd", OpaquePtr(std::move(fwd))},
                                                         {"num_consts", consts},
                                                         {"symbolic_zeros", false}});
}

}  // namespace reprise
