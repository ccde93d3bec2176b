#include "program/trace.h"

#include "base/mesh.h"
#include "base/stack.h"
#include "base/work.h"
#include "program/check.h"
#include "program/evaluate.h"
#include "program/varying.h"
#include "program/walk.h"
#include "reprise/program.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

namespace reprise {
namespace {

std::atomic<std::uint64_t> next_trace_id{1};
std::atomic<std::uint64_t> next_thread_id{1};
std::uint64_t this_thread() {
  thread_local const std::uint64_t id = next_thread_id++;
  return id;
}

// Of this thread, outermost first; null: none. Objects of a thread with destructors are gone when
// those of the process are destroyed, and they may trace.
thread_local std::vector<Trace*>* open_traces = nullptr;
thread_local Trace* current_trace = nullptr;

[[noreturn]] void leaked(const Array& a) {
  const TracedVar& v = *content(a).traced();
  const std::string where = to_string(v.made_at);
  const std::string made = where.empty() ? "" : ", made at " + where;
  if (v.thread != this_thread()) {
    fail_with_hint<TraceError>("trace and use a function on one thread",
                               "trace: a traced value belongs to the thread that made it, got ",
                               a.type(), made);
  }
  fail_with_hint<TraceError>("return the value from the traced function instead of storing it",
                             "trace: a traced value was used after its trace ended, got ", a.type(),
                             made);
}

Trace& trace_of(const Array& a) {
  const TracedVar& v = *content(a).traced();
  for (std::size_t i = open_traces == nullptr ? 0 : open_traces->size(); i-- > 0;) {
    if ((*open_traces)[i]->id() == v.trace) return *(*open_traces)[i];
  }
  leaked(a);
}

class ValuesOfTraces final : public TracedValues {
 public:
  Array concrete(const Array& a, const char* what) const override {
    return trace_of(a).concrete_value(a, what);
  }
};
constinit const ValuesOfTraces values_of_traces;

}  // namespace

Array make_abstract(Type type) {
  return make_traced(std::move(type), {.values = &values_of_traces, .made_at = {}});
}

bool is_tracing() { return current_trace != nullptr; }
std::uint64_t detail::current_trace() {
  return reprise::current_trace == nullptr ? 0 : reprise::current_trace->id();
}

bool detail::is_same_value(const Array& a, const Array& b) { return identity(a) == identity(b); }

Trace* target_trace(const Arrays& x) {
  Trace* target = current_trace;
  for (const Array& a : x) {
    if (!is_traced(a)) continue;
    const std::uint64_t id = content(a).traced()->trace;
    if (target != nullptr && target->id() == id) continue;
    Trace& t = trace_of(a);
    if (target == nullptr || t.id() > target->id()) target = &t;
  }
  return target;
}

Arrays Primitive::bind(const Arrays& x, Params params) const {
  Types in;
  in.reserve(x.size());
  const MeshAxes* varying = nullptr;
  bool differs = false;
  for (const Array& a : x) {
    in.push_back(a.type());
    differs = differs || (in.size() > 1 && in.back().varying != in.front().varying);
    varying = united(varying, in.back().varying);
  }
  const bool as_operands = varying != nullptr && !types_varying && kind != Kind::call;
  if (as_operands && differs) return bind(with_varying(x, varying), std::move(params));
  Types out = type(in, params);
  for (Type& t : out) {
    element_count(t.shape);  // no size ever wraps
    if (as_operands) t.varying = varying;
  }
  if (Trace* t = target_trace(x)) return t->record(*this, x, std::move(params), std::move(out));
  return evaluate(*this, x, params, out);
}

// ------------------------------------------------------------------------------------------ Trace
Trace::Trace(TraceInfo info, bool current)
    : id_(next_trace_id++), info_(std::move(info)), current_(current), outer_(current_trace) {
  if (open_traces == nullptr) open_traces = new std::vector<Trace*>;
  open_traces->push_back(this);
  if (current_) current_trace = this;
}
Trace::~Trace() { seal(); }
void Trace::seal() {
  if (open_traces == nullptr || std::erase(*open_traces, this) == 0) return;
  if (open_traces->empty()) {
    delete open_traces;
    open_traces = nullptr;
  }
  if (current_) current_trace = outer_;
}

Array Trace::input(const Type& type) {
  element_count(type.shape);
  const Var v = program_.fresh(type);
  args_.push_back(v);
  return make_traced(type, {&values_of_traces, id_, v, this_thread(), user_location()});
}

Atom Trace::atom(const Array& a) {
  const ArrayData& d = content(a);
  if (d.traced() && d.traced()->trace == id_) return Atom::of(d.traced()->var);
  if (d.number()) {
    // In the linear program (never current) a promoted literal counts as a residual. In the body of
    // a call it is a number like any other, whoever reads the body.
    Literal number = *d.number();
    if (current_ && info_.body) number.promoted = false;
    if (!number.promoted || current_) return Atom::of(number);
  }
  if (d.traced()) trace_of(a);  // throws if it leaked
  const auto [it, is_new] = const_of_.try_emplace(identity(a), -1);
  if (is_new) {
    it->second = program_.fresh(*d.type);
    const_vars_.push_back(it->second);
    consts_.push_back(a);
  }
  return Atom::of(it->second);
}

Arrays Trace::record(const Primitive& prim, const Arrays& x, Params&& params, Types&& types) {
  count_work();
  Equation e;
  e.prim = &prim;
  e.in.reserve(x.size());
  for (const Array& a : x) e.in.push_back(atom(a));
  e.params = std::move(params);
  e.at = user_location();
  e.phase = current_phase();
  Arrays out;
  out.reserve(types.size());
  e.out.reserve(types.size());
  for (Type& t : types) {
    const Var v = program_.fresh(t);
    e.out.push_back(v);
    out.push_back(make_traced(std::move(t), {&values_of_traces, id_, v, this_thread(), e.at}));
  }
  program_.eqns.push_back(std::move(e));
  return out;
}

Traced Trace::finish(const Arrays& out) {
  for (const Array& a : out) program_.out.push_back(atom(a));
  seal();
  program_.in = const_vars_;
  program_.num_consts = info_.body ? 0 : const_vars_.size();
  program_.in.insert(program_.in.end(), args_.begin(), args_.end());
  program_.name = info_.name;
  program_.arg_names = info_.arg_names;
  check_after("trace", program_);
  return {std::make_shared<const Program>(std::move(program_)), std::move(consts_),
          std::move(values_)};
}

// Which arguments a variable depends on: "the value of the argument x".
std::string Trace::blame(Var wanted) const {
  std::vector<bool> needed(program_.types.size());
  needed[static_cast<std::size_t>(wanted)] = true;
  for (std::size_t i = program_.eqns.size(); i-- > 0;) {
    const Equation& e = program_.eqns[i];
    const bool used = std::any_of(e.out.begin(), e.out.end(),
                                  [&](Var v) { return needed[static_cast<std::size_t>(v)]; });
    if (!used) continue;
    for (const Atom& a : e.in) {
      if (a.is_var()) needed[static_cast<std::size_t>(a.var)] = true;
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < args_.size(); ++i) {
    if (!needed[static_cast<std::size_t>(args_[i])]) continue;
    names.push_back(i < info_.arg_names.size() ? info_.arg_names[i] : str("args[", i, "]"));
  }
  if (names.empty()) return "";
  if (names.size() == 1) return "; it depends on the value of the argument " + names[0];
  const std::string last = names.back();
  names.pop_back();
  return "; it depends on the values of the arguments " + join(names, ", ") + " and " + last;
}

Array Trace::concrete_value(const Array& a, const char* what) {
  const Var wanted = content(a).traced()->var;
  if (info_.concrete_args == nullptr) {
    const std::string function = info_.name.empty() ? "a function" : "the function " + info_.name;
    fail_with_hint<TraceError>(
        "make the argument static (an int, bool or enum parameter, or static_argnums), or use "
        "where, cond or while_loop",
        what, ": a number is needed while tracing ", function, " for ", info_.transform, ", got ",
        a.type(), blame(wanted));
  }
  if (values_.size() < program_.types.size()) values_.resize(program_.types.size());
  auto value_of = [&](Var v) -> std::optional<Array>& {
    return values_[static_cast<std::size_t>(v)];
  };
  for (std::size_t i = 0; i < args_.size(); ++i) {
    if (!value_of(args_[i])) value_of(args_[i]) = concrete((*info_.concrete_args)[i], what);
  }
  for (std::size_t i = 0; i < consts_.size(); ++i) {
    if (!value_of(const_vars_[i])) value_of(const_vars_[i]) = concrete(consts_[i], what);
  }
  for (; !value_of(wanted); ++evaluated_) {
    const Equation& e = program_.eqns[evaluated_];
    if (e.out.empty()) continue;  // an effect: it comes when the program runs
    const AtEquation at(e.at);
    Arrays x;
    for (const Atom& in : e.in)
      x.push_back(in.is_var() ? *value_of(in.var) : make_number(in.literal));
    Types out;
    for (Var v : e.out) out.push_back(program_.type(v));
    // Evaluation of a call runs its body through bind: nothing may be recorded meanwhile.
    Trace* const saved = std::exchange(current_trace, nullptr);
    Arrays y;
    try {
      y = evaluate(*e.prim, x, e.params, out);
    } catch (...) {
      current_trace = saved;
      throw;
    }
    current_trace = saved;
    for (std::size_t k = 0; k < e.out.size(); ++k) value_of(e.out[k]) = y[k];
  }
  return *value_of(wanted);
}

Traced trace(const FlatFunction& f, const Types& in, const TraceInfo& info) {
  check_nesting(info.transform);
  Trace t(info, /*current=*/true);
  Arrays args;
  args.reserve(in.size());
  for (const Type& type : in) args.push_back(t.input(type));
  Arrays out;
  {
    const InUserCode scope;
    // programs are shared: what they are part of is their user's to say
    const InPhase anew(Phase::forward);
    out = f(args);
  }
  return t.finish(out);
}

// ------------------------------------------------------------------------------------------- eval
const std::vector<std::vector<Var>>& last_reads(const Program& p) {
  using Reads = std::vector<std::vector<Var>>;
  return *derive<Reads>(p, "last_reads", [&] {
    Reads reads(p.eqns.size());
    std::vector<bool> seen(p.types.size());
    for (const Atom& a : p.out) {
      if (a.is_var()) seen[static_cast<std::size_t>(a.var)] = true;
    }
    auto last = [&](Var v, std::size_t eqn) {
      if (seen[static_cast<std::size_t>(v)]) return;
      seen[static_cast<std::size_t>(v)] = true;
      reads[eqn].push_back(v);
    };
    for (std::size_t i = p.eqns.size(); i-- > 0;) {
      for (const Atom& a : p.eqns[i].in) {
        if (a.is_var()) last(a.var, i);
      }
      for (Var v : p.eqns[i].out) last(v, i);  // never read at all
    }
    return reads;
  });
}

Arrays eval(const Program& p, Arrays args) {
  return walk(p, std::move(args),
              [](const Equation& e, const Arrays& x) { return e.prim->bind(x, e.params); });
}

std::string broken_param(const Primitive& p, const Params& params) {
  for (const ParamRule& rule : p.param_rules) {
    const Attr* value = params.find(rule.key);
    if (value == nullptr && (rule.otherwise == absent || rule.otherwise == unused)) continue;
    if (value != nullptr && holds(rule.forms, *value)) continue;
    return str(p.name, ": the param ", rule.key, " must be ", forms_text(rule.forms), ", got ",
               value == nullptr ? "nothing" : python_text(*value));
  }
  return "";
}
void no_such_rule(const Primitive& p, const char* rule, const char* hint) {
  fail_with_hint<RuleError>(hint, p.name, ": no ", rule, " rule, got a use that needs one");
}

}  // namespace reprise
