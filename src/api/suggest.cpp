#include "api/suggest.h"

#include "api/flat.h"
#include "api/linear_map.h"
#include "array/literal.h"
#include "base/error.h"
#include "program/trace.h"
#include "remat/set_policy.h"
#include "reprise/remat.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <ostream>

namespace reprise {
namespace {

using Names = std::vector<std::string>;

// What becomes of the values of one name.
enum class Fate : char { again, saved, offloaded };
using Fates = std::vector<Fate>;

Names names_with(const Names& names, const Fates& fates, Fate fate) {
  Names chosen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (fates[i] == fate) chosen.push_back(names[i]);
  }
  return chosen;
}

Policy policy_of(const Names& names, const Fates& fates) {
  const Names saved = names_with(names, fates, Fate::saved);
  const Names offloaded = names_with(names, fates, Fate::offloaded);
  if (offloaded.empty()) return checkpoint_policies::save_only_these_names_list(saved);
  return checkpoint_policies::save_and_offload_only_these_names(
      {saved, offloaded, "device", "pinned_host"});
}

// Plans of one function by what becomes of its names.
class Suggester {
 public:
  Suggester(Names names, const detail::TraceGradient& trace, std::int64_t budget)
      : names_(std::move(names)), trace_(trace), budget_(static_cast<std::size_t>(budget)) {}

  struct Plan {
    std::size_t peak = 0;
    double seconds = 0;
  };
  Plan plan(const std::optional<Policy>& policy, const JitOptions& options = {}) const {
    const auto entry = trace_(policy, options);
    const auto compiled = entry->planned();
    return {compiled->memory().peak_bytes, compiled->seconds()};
  }
  const Plan& plan(const Fates& fates) {
    auto known = made_.find(fates);
    if (known == made_.end()) known = made_.emplace(fates, plan(policy_of(names_, fates))).first;
    return known->second;
  }
  // All choices of few names; of many those on the way from all saved to none, each time the name
  // that frees most for its time.
  void look_at(Fate other) {
    constexpr std::size_t few = 5;
    if (names_.size() <= few) {
      for (std::size_t mask = 0; mask < std::size_t{1} << names_.size(); ++mask) {
        Fates fates(names_.size(), Fate::saved);
        for (std::size_t i = 0; i < names_.size(); ++i) {
          if (mask >> i & 1) fates[i] = other;
        }
        plan(fates);
      }
      return;
    }
    Fates fates(names_.size(), Fate::saved);
    for (std::size_t left = names_.size(); left > 0; --left) {
      const Plan now = plan(fates);
      double best = 0;
      std::size_t chosen = names_.size();
      for (std::size_t i = 0; i < names_.size(); ++i) {
        if (fates[i] != Fate::saved) continue;
        fates[i] = other;
        const Plan next = plan(fates);
        fates[i] = Fate::saved;
        const double freed = static_cast<double>(now.peak) - static_cast<double>(next.peak);
        const double rate = freed / std::max(next.seconds - now.seconds, 1e-12);
        if (chosen < names_.size() && rate <= best) continue;
        best = rate;
        chosen = i;
      }
      fates[chosen] = other;
    }
  }
  // The quickest within the budget; if there is none, the one with the least peak.
  const Fates& best() const {
    const auto better = [&](const auto& a, const auto& b) {
      const bool a_fits = a.second.peak <= budget_, b_fits = b.second.peak <= budget_;
      if (a_fits != b_fits) return a_fits;
      if (a_fits && a.second.seconds != b.second.seconds)
        return a.second.seconds < b.second.seconds;
      return a.second.peak < b.second.peak;
    };
    return std::min_element(made_.begin(), made_.end(), better)->first;
  }
  bool fits() { return plan(best()).peak <= budget_; }

  PolicySuggestion result() {
    PolicySuggestion s;
    s.budget = static_cast<std::int64_t>(budget_);
    const Fates fates = best();
    s.policy = policy_of(names_, fates);
    s.saved = names_with(names_, fates, Fate::saved);
    s.offloaded = names_with(names_, fates, Fate::offloaded);
    s.peak_bytes = plan(fates).peak;
    s.seconds = plan(fates).seconds;
    s.fits = s.peak_bytes <= budget_;
    const Plan plain = plan(std::nullopt);
    s.plain_peak_bytes = plain.peak;
    s.plain_seconds = plain.seconds;
    try {
      JitOptions options;
      options.memory_budget = s.budget;
      const Plan optimum = plan(std::nullopt, options);
      s.best_peak_bytes = optimum.peak;
      s.best_seconds = optimum.seconds;
    } catch (const RuntimeError&) {  // no plan within the budget: zeros say so
      s.best_peak_bytes = 0;
    }
    return s;
  }

 private:
  const Names names_;
  const detail::TraceGradient& trace_;
  const std::size_t budget_;
  std::map<Fates, Plan> made_;
};

}  // namespace

namespace detail {

PolicySuggestion suggest_among(const std::set<std::string>& names, const TraceGradient& trace,
                               std::int64_t budget) {
  constexpr std::int64_t most = std::int64_t{1} << 57;
  if (budget <= 0 || budget > most)
    fail<TypeError>("suggest_policy: a budget is from 1 to 2^57 bytes, got ", budget);
  if (names.empty()) {
    fail_with_hint<TypeError>("name values with checkpoint_name(x, \"h\")",
                              "suggest_policy: the function must name values that a policy can "
                              "speak of, got none");
  }
  Suggester suggester({names.begin(), names.end()}, trace, budget);
  suggester.look_at(Fate::again);
  if (!suggester.fits()) suggester.look_at(Fate::offloaded);
  return suggester.result();
}

namespace {

// The gradients of a traced loss under any policy.
class TracedLoss {
 public:
  TracedLoss(const Callee& f, const Types& types, std::size_t differentiated)
      : f_(f),
        types_(types),
        traced_(reprise::trace(
            f.run, types,
            {.transform = "suggest_policy", .name = f.name, .arg_names = f.arg_names})),
        has_own_(has_checkpoints(*traced_.program)),
        wrt_(types.size(), false),
        argument_of_(types.size()) {
    f_.identity = "";
    for (std::size_t i = 0; i < differentiated; ++i) wrt_[i] = is_floating(types[i].dtype);
    std::iota(argument_of_.begin(), argument_of_.end(), std::size_t{0});
    const Types out = traced_.program->out_types();
    if (out.size() == 1 && out[0].shape.empty() && is_floating(out[0].dtype)) return;
    fail<TypeError>("suggest_policy: the function must return one floating scalar, got ",
                    out.empty() ? std::string("nothing") : to_string(out[0]),
                    out.size() > 1 ? " and more" : "");
  }

  std::set<std::string> names() const { return checkpoint_names(*traced_.program); }

  std::shared_ptr<const JitEntry> gradient(const std::optional<Policy>& policy,
                                           const JitOptions& options) const {
    Callee loss = f_, gradient = f_;
    loss.run = run(policy);
    gradient.run = [&](const Arrays& x) {
      const VjpOutputs v = vjp(loss, x, wrt_);
      const Dtype dtype = traced_.program->out_types()[0].dtype;
      const Arrays gradients = v.map.transposed({make_number(make_literal(dtype, 1))}, {});
      Arrays results = v.out;
      for (std::size_t i = 0; i < wrt_.size(); ++i) {
        if (wrt_[i]) results.push_back(gradients[i]);
      }
      return results;
    };
    Arrays placeholders;
    for (const Type& t : types_) placeholders.push_back(make_traced(t, {}));
    return trace_jit(gradient, placeholders, options, argument_of_, types_.size());
  }

 private:
  // Its own checkpoints under the policy, or one checkpoint around it.
  std::function<Arrays(const Arrays&)> run(const std::optional<Policy>& policy) const {
    const ProgramPtr program = !policy    ? without_checkpoints(traced_.program)
                               : has_own_ ? with_policy(traced_.program, *policy)
                                          : traced_.program;
    const auto evaluate = [this, program](const Arrays& x) {
      Arrays all = traced_.consts;
      all.insert(all.end(), x.begin(), x.end());
      return eval(*program, all);
    };
    if (!policy || has_own_) return evaluate;
    return [this, evaluate, policy](const Arrays& x) {
      Callee inner = f_;
      inner.run = evaluate;
      return checkpoint(inner, x, argument_of_, x.size(), {.policy = *policy});
    };
  }

  Callee f_;
  const Types types_;
  const Traced traced_;
  const bool has_own_;
  std::vector<bool> wrt_;
  std::vector<std::size_t> argument_of_;
};

}  // namespace

PolicySuggestion suggest_policy(const Callee& f, const Arrays& args, std::size_t differentiated,
                                std::int64_t budget) {
  const AtUser at(f.at);
  const TracedLoss loss(f, leaf_types(args), differentiated);
  return suggest_among(
      loss.names(),
      [&](const std::optional<Policy>& policy, const JitOptions& options) {
        return loss.gradient(policy, options);
      },
      budget);
}

}  // namespace detail

std::string PolicySuggestion::jax() const {
  const auto quoted = [](const Names& names) {
    Names all;
    for (const std::string& n : names) all.push_back("'" + n + "'");
    return join(all, ", ");
  };
  if (offloaded.empty())
    return "jax.checkpoint_policies.save_only_these_names(" + quoted(saved) + ")";
  return "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[" +
         quoted(saved) + "], names_which_can_be_offloaded=[" + quoted(offloaded) +
         "], offload_src='device', offload_dst='pinned_host')";
}

std::ostream& operator<<(std::ostream& out, const PolicySuggestion& s) {
  const auto row = [&](const char* what, std::size_t peak, double seconds) {
    char text[160];
    std::snprintf(text, sizeof text, "%-22s %12.1f MiB  %+6.1f %%\n", what,
                  static_cast<double>(peak) / (1 << 20),
                  s.plain_seconds > 0 ? 100 * (seconds / s.plain_seconds - 1) : 0.0);
    out << text;
  };
  out << s.jax() << '\n';
  if (!s.fits) out << "does not fit into the budget; no policy over these names needs less\n";
  out << "                               peak      time\n";
  row("this policy", s.peak_bytes, s.seconds);
  if (s.best_peak_bytes > 0) row("jit with the budget", s.best_peak_bytes, s.best_seconds);
  row("nothing checkpointed", s.plain_peak_bytes, s.plain_seconds);
  return out;
}

}  // namespace reprise
