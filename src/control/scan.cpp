// The scan primitive: types, evaluation, forward derivative, batching, dead code.
#include "control/scan.h"

#include "control/body.h"
#include "control/records.h"
#include "control/scan_linear.h"
#include "ops/lax.h"
#include "transform/dce.h"
#include "transform/jvp.h"
#include "transform/vmap.h"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

const ProgramPtr& body_of(const Params& params) { return params.get<ProgramPtr>("jaxpr"); }

// Counts that a program read from text may have wrong.
void check_shape(const Types& in, const Params& params) {
  const Program& body = *body_of(params);
  const auto consts = params.get<std::int64_t>("num_consts"),
             carry = params.get<std::int64_t>("num_carry");
  const auto operands = static_cast<std::int64_t>(in.size()),
             outputs = static_cast<std::int64_t>(body.out.size());
  if (consts < 0 || carry < 0 || carry > outputs || consts > operands ||
      carry > operands - consts || params.get<std::int64_t>("length") < 0) {
    fail<TypeError>("scan: the counts do not fit, got ", consts, " constants and ", carry,
                    " carries of ", operands, " operands and ", outputs, " results");
  }
}

Types scan_type(const Types& in, const Params& params) {
  check_shape(in, params);
  check_budget("scan", params, std::max<std::int64_t>(params.get<std::int64_t>("length"), 1));
  const ScanShape s = scan_shape(params);
  const Program& body = *body_of(params);
  Types steps = in;
  for (std::size_t i = s.consts + s.carry; i < in.size(); ++i) {
    if (in[i].shape.empty() || in[i].shape[0] != s.length) {
      fail<TypeError>("scan: scanned arrays must have the length as leading size, got ", in[i],
                      " for length ", s.length);
    }
    steps[i] = sliced(in[i]);
  }
  check_operands("scan", body, steps);
  Types out = body.out_types();
  for (std::size_t k = 0; k < s.carry; ++k) {
    const Type& carry = in[s.consts + k];
    if (carry.shape != out[k].shape || carry.dtype != out[k].dtype) {
      fail<TypeError>("scan: the carry must keep its type, got ", carry, " in and ", out[k],
                      " out");
    }
  }
  for (std::size_t k = s.carry; k < out.size(); ++k) out[k] = stacked(out[k], s.length);
  return out;
}

Arrays scan_eval(const Arrays& x, const Params& params, const Types& out) {
  const ScanShape s = scan_shape(params);
  const Program& body = *body_of(params);
  Arrays carry = slice_of(x, s.consts, s.consts + s.carry);
  std::vector<NewArray> ys;
  for (std::size_t k = s.carry; k < out.size(); ++k) ys.emplace_back(out[k]);
  for (std::int64_t step = 0; step < s.length; ++step) {
    const std::int64_t i = s.reverse ? s.length - 1 - step : step;
    Arrays args = slice_of(x, 0, s.consts);
    for (Array& c : carry) args.push_back(std::move(c));
    for (std::size_t k = s.consts + s.carry; k < x.size(); ++k) args.push_back(row(x[k], i));
    Arrays y = eval(body, std::move(args));
    for (std::size_t k = 0; k < ys.size(); ++k) {
      const Array& value = y[s.carry + k];
      const std::size_t bytes = value.nbytes();
      if (bytes == 0) continue;
      std::memcpy(ys[k].bytes() + static_cast<std::size_t>(i) * bytes, content(value).elements,
                  bytes);
    }
    carry = slice_of(y, 0, s.carry);
  }
  for (NewArray& y : ys) carry.push_back(std::move(y).finish());
  return carry;
}

template <class T>
std::vector<T> part(const std::vector<T>& v, std::size_t begin, std::size_t end) {
  return {v.begin() + static_cast<std::ptrdiff_t>(begin),
          v.begin() + static_cast<std::ptrdiff_t>(end)};
}

Duals scan_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const std::size_t carry = scan_shape(params).carry, ys = body_of(params)->out.size() - carry;
  const JvpScan j = jvp_scan(x, dx, params);
  const Arrays out = bind_scan(j.shape, j.body, j.args);
  Duals result;
  result.out = concat(slice_of(out, 0, carry), slice_of(out, j.shape.carry, j.shape.carry + ys));
  const Arrays dots =
      concat(slice_of(out, carry, j.shape.carry), slice_of(out, j.shape.carry + ys, out.size()));
  result.tangents = spread(j.nonzero, dots);
  return result;
}

Batched scan_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params& params) {
  const ScanShape s = scan_shape(params);
  const Program& body = *body_of(params);
  const BatchedLoop b = batched_loop(body, s.consts, s.carry, mapped_mask(axes), n);
  Arrays args = b.body->consts;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool scanned = i >= s.consts + s.carry;
    args.push_back(b.mapped[i] ? axis_at(x[i], axes[i], scanned ? 1 : 0, n) : x[i]);
  }
  ScanShape shape = s;
  shape.consts += b.body->consts.size();
  Batched result{bind_scan(shape, b.body->program, args), {}};
  for (std::size_t k = 0; k < body.out.size(); ++k) {
    const std::int64_t at = k < s.carry ? 0 : 1;
    result.axes.push_back(b.body->out_axes[k] ? Axis(at) : std::nullopt);
  }
  return result;
}

// A carry is kept iff it is used or needed by a kept carry or output.
std::optional<Equation> scan_dce(const Program&, const Equation& e, const std::vector<bool>& used) {
  const ScanShape s = scan_shape(e.params);
  const ProgramPtr& body = body_of(e.params);
  std::vector<bool> wanted = used, keep;
  for (bool stable = false; !stable;) {
    stable = true;
    keep = live_inputs(body, wanted);
    for (std::size_t k = 0; k < s.carry; ++k) {
      if (!keep[s.consts + k] || wanted[k]) continue;
      wanted[k] = true;
      stable = false;
    }
  }
  for (std::size_t k = 0; k < s.carry; ++k) keep[s.consts + k] = wanted[k];
  Equation out = e;
  out.in.clear();
  out.out.clear();
  std::int64_t consts = 0, carry = 0;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!keep[i]) continue;
    out.in.push_back(e.in[i]);
    consts += i < s.consts ? 1 : 0;
    carry += i >= s.consts && i < s.consts + s.carry ? 1 : 0;
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (wanted[k]) out.out.push_back(e.out[k]);
  }
  out.params = e.params.with("jaxpr", dce_body(body, wanted, keep))
                   .with("num_consts", consts)
                   .with("num_carry", carry);
  return out;
}

}  // namespace

Type sliced(Type t) {
  t.shape.erase(t.shape.begin());
  return t;
}
Type stacked(Type t, std::int64_t length) {
  t.shape.insert(t.shape.begin(), length);
  return t;
}
// Sharing nothing.
Array row(const Array& stacked, std::int64_t i) {
  const Type type = sliced(stacked.type());
  NewArray out(type);
  const std::size_t bytes = static_cast<std::size_t>(out.size()) * itemsize(type.dtype);
  if (bytes > 0) {
    std::memcpy(out.bytes(), content(stacked).elements + static_cast<std::size_t>(i) * bytes,
                bytes);
  }
  return std::move(out).finish();
}

JvpScan jvp_scan(const Arrays& x, const Tangents& dx, const Params& params) {
  const ScanShape s = scan_shape(params);
  const Program& body = *body_of(params);
  const std::size_t split = s.consts + s.carry, ys = body.out.size() - s.carry;
  std::vector<bool> active = nonzero_mask(dx);
  std::shared_ptr<const JvpProgram> j;
  for (bool stable = false; !stable;) {
    stable = true;
    std::vector<bool> instantiate = part(active, s.consts, split);
    instantiate.resize(body.out.size());
    j = jvp_program(body, active, instantiate);
    for (std::size_t k = 0; k < s.carry; ++k) {
      if (!j->nonzero_out[k] || active[s.consts + k]) continue;
      active[s.consts + k] = true;
      stable = false;
    }
  }
  // Binders from [consts carry xs | dots] to [consts dconsts carry dcarry xs dxs].
  const std::size_t extra = j->consts.size();
  std::vector<std::size_t> order;
  Arrays args = j->consts;
  for (std::size_t i = 0; i < extra; ++i) order.push_back(i);
  std::size_t counts[3] = {};
  const std::size_t bounds[4] = {0, s.consts, split, x.size()};
  std::size_t dot = extra + x.size();
  for (std::size_t g = 0; g < 3; ++g) {
    for (std::size_t i = bounds[g]; i < bounds[g + 1]; ++i) {
      order.push_back(extra + i);
      args.push_back(x[i]);
    }
    for (std::size_t i = bounds[g]; i < bounds[g + 1]; ++i) {
      if (!active[i]) continue;
      order.push_back(dot++);
      args.push_back(dx[i] ? *dx[i] : instantiate_zeros(x[i].type()));
      ++counts[g];
    }
  }
  std::vector<std::size_t> out_order;  // carry dcarry ys dys
  std::size_t out_dot = body.out.size();
  for (std::size_t k = 0; k < s.carry; ++k) out_order.push_back(k);
  for (std::size_t k = 0; k < counts[1]; ++k) out_order.push_back(out_dot++);
  for (std::size_t k = 0; k < ys; ++k) out_order.push_back(s.carry + k);
  while (out_order.size() < j->program->out.size()) out_order.push_back(out_dot++);
  const auto rearranged = derive<ProgramPtr>(
      *j->program, str("scan_jvp", s.consts, ",", s.carry),
      [&] { return permute_outputs(*permute_inputs(*j->program, order), out_order); });
  ScanShape shape = s;
  shape.consts = extra + s.consts + counts[0];
  shape.carry = s.carry + counts[1];
  return {shape, *rearranged, std::move(args), j->nonzero_out};
}

BatchedLoop batched_loop(const Program& body, std::size_t consts, std::size_t carry,
                         std::vector<bool> mapped, std::int64_t n) {
  for (;;) {
    Axes in_axes;
    for (bool m : mapped) in_axes.push_back(m ? Axis(0) : std::nullopt);
    std::vector<bool> force = part(mapped, consts, consts + carry);
    force.resize(body.out.size());
    auto b = batched_program(body, in_axes, n, OutAxes::front, force);
    bool stable = true;
    for (std::size_t k = 0; k < carry; ++k) {
      if (!b->out_axes[k] || mapped[consts + k]) continue;
      mapped[consts + k] = true;
      stable = false;
    }
    if (stable) return {std::move(b), std::move(mapped)};
  }
}

ScanShape scan_shape(const Params& p) {
  return {static_cast<std::size_t>(p.get<std::int64_t>("num_consts")),
          static_cast<std::size_t>(p.get<std::int64_t>("num_carry")),
          p.get<std::int64_t>("length"),
          p.get<bool>("reverse"),
          p.get<std::int64_t>("unroll"),
          count_or_none(p, "checkpoints"),
          count_or_none(p, "disk_checkpoints")};
}

Params scan_params(const ScanShape& s, const ProgramPtr& body) {
  const Params params{{"jaxpr", body},
                      {"length", s.length},
                      {"num_carry", static_cast<std::int64_t>(s.carry)},
                      {"num_consts", static_cast<std::int64_t>(s.consts)},
                      {"reverse", s.reverse},
                      {"unroll", s.unroll}};
  return with_budget(params, s.checkpoints, s.disk_checkpoints);
}
Arrays bind_scan(const ScanShape& s, const ProgramPtr& body, const Arrays& args) {
  return scan_p.bind(args, scan_params(s, body));
}

ProgramPtr permute_inputs(const Program& p, const std::vector<std::size_t>& order) {
  auto q = std::make_shared<Program>(p);
  for (std::size_t i = 0; i < order.size(); ++i) q->in[i] = p.in[order[i]];
  return q;
}
ProgramPtr permute_outputs(const Program& p, const std::vector<std::size_t>& order) {
  auto q = std::make_shared<Program>(p);
  for (std::size_t i = 0; i < order.size(); ++i) q->out[i] = p.out[order[i]];
  return q;
}

namespace {

// JAX counts operands, newer JAX describes them by trees: their types say it too.
Params scan_parsed(const Params& printed, const Types& in, const Types& out) {
  if (printed.find("num_carry") && printed.find("num_consts")) return printed;
  const Program& body = *body_of(printed);
  std::size_t carry = 0, scanned = 0;
  while (carry < std::min(out.size(), body.out.size()) &&
         out[carry].ndim() == body.type(body.out[carry]).ndim()) {
    ++carry;
  }
  while (scanned < std::min(in.size(), body.in.size()) &&
         in[in.size() - 1 - scanned].ndim() !=
             body.type(body.in[body.in.size() - 1 - scanned]).ndim()) {
    ++scanned;
  }
  const auto consts =
      static_cast<std::int64_t>(in.size()) - static_cast<std::int64_t>(carry + scanned);
  return printed.with("num_carry", static_cast<std::int64_t>(carry)).with("num_consts", consts);
}

constexpr ParamRule scan_rules[] = {{"_split_transpose", form::flag, unused},
                                    {"checkpoints", form::integer, absent},
                                    {"disk_checkpoints", form::integer, absent},
                                    {"ft_in", form::text, unused},
                                    {"ft_out", form::text, unused},
                                    {"jaxpr", form::program},
                                    {"length", form::integer},
                                    {"linear", form::text, unused},
                                    {"num_carry", form::integer, completed},
                                    {"num_consts", form::integer, completed},
                                    {"reverse", form::flag, "False"},
                                    {"unroll", form::integer, "1"}};

}  // namespace

constinit const Primitive scan_p{.name = "scan",
                                 .kind = Kind::call,
                                 .type = scan_type,
                                 .eval = scan_eval,
                                 .jvp = scan_jvp,
                                 .linearize = scan_linearize,
                                 .transpose = scan_transpose,
                                 .batch = scan_batch,
                                 .partial_eval = scan_partial_eval,
                                 .dce = scan_dce,
                                 .param_rules = scan_rules,
                                 .parsed_params = scan_parsed};

}  // namespace reprise
