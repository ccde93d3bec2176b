#include "reprise/policies.h"

#include "base/error.h"
#include "remat/within_budget.h"

#include <algorithm>
#include <atomic>
#include <ostream>

namespace reprise {

struct PolicyRecord {
  const char* name;
  const char* repr;
  bool (*saves)(const EquationInfo&);
};
struct PolicyImpl {
  std::function<Policy::Answer(const EquationInfo&)> decide;
  std::string text, repr, key;
  std::vector<std::string> names = {};
  std::vector<Policy> any_of = {};  // it saves what one of these saves; empty: it decides by itself
  std::optional<PolicyBudget> budget = {};
};

namespace {

constexpr const char* address = " at 0xXXXXXXXXXXXX>";
std::string function_repr(const std::string& name) { return "<function " + name + address; }
std::string factory_repr(const std::string& name) {
  return function_repr(name + ".<locals>.policy");
}

bool is_dot(const EquationInfo& e) { return e.primitive == "dot_general"; }
bool is_plain_dot(const EquationInfo& e) { return is_dot(e) && !e.has_batch_dims; }
bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// frozenset({'a', 'b'}) as Python prints it, sorted; frozenset() when empty.
std::string frozenset(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty()) return "frozenset()";
  for (std::string& n : names) n = "'" + n + "'";
  return "frozenset({" + join(names, ", ") + "})";
}
std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> q;
  for (const std::string& n : names) q.push_back("'" + n + "'");
  return join(q, ", ");
}

Policy make(std::string text, std::string repr, std::string key, std::vector<std::string> names,
            std::function<Policy::Answer(const EquationInfo&)> decide,
            std::vector<Policy> any_of = {}) {
  return Policy(std::make_shared<const PolicyImpl>(
      PolicyImpl{std::move(decide), std::move(text), std::move(repr), std::move(key),
                 std::move(names), std::move(any_of)}));
}
// The key of a policy that is its kind and these names, which may hold any character: each stands
// behind its length.
std::string key_of(const char* kind, const std::vector<std::string>& names) {
  std::string key = kind;
  for (const std::string& n : names) key += reprise::str(":", n.size(), ":", n);
  return key + ";";
}
Policy::Answer when(bool save) {
  return save ? Policy::Answer(Saveable{}) : Policy::Answer(Recompute{});
}
bool saves(const Policy::Answer& a) { return !std::holds_alternative<Recompute>(a); }

std::vector<std::string> names_of(const Policy& a, const Policy& b) {
  std::vector<std::string> all = a.names();
  for (const std::string& n : b.names()) all.push_back(n);
  return all;
}

}  // namespace

namespace checkpoint_policies {
constinit const PolicyRecord everything_record{"everything_saveable",
                                               "<function everything_saveable at 0xXXXXXXXXXXXX>",
                                               [](const EquationInfo&) { return true; }};
constinit const PolicyRecord nothing_record{"nothing_saveable",
                                            "<function nothing_saveable at 0xXXXXXXXXXXXX>",
                                            [](const EquationInfo&) { return false; }};
constinit const PolicyRecord dots_record{
    "dots_saveable", "DotsSaveable(only_if_no_batch_dims=False)",
    [](const EquationInfo& e) { return is_dot(e) || e.primitive == "conv_general_dilated"; }};
constinit const PolicyRecord dots_no_batch_record{
    "dots_with_no_batch_dims_saveable", "DotsSaveable(only_if_no_batch_dims=True)", is_plain_dot};
}  // namespace checkpoint_policies

std::size_t EquationInfo::output_bytes() const {
  std::size_t bytes = 0;
  for (const Type& t : outputs) bytes += t.nbytes();
  return bytes;
}

std::shared_ptr<const PolicyImpl> Policy::custom(std::function<Answer(const EquationInfo&)> f,
                                                 std::string name) {
  static std::atomic<std::uint64_t> serial{0};
  std::string key = reprise::str("custom", ++serial);
  return std::make_shared<const PolicyImpl>(
      PolicyImpl{std::move(f), name, function_repr(name), std::move(key)});
}

Policy::Answer Policy::operator()(const EquationInfo& e) const {
  if (record_ != nullptr) return when(record_->saves(e));
  if (impl_ != nullptr) return impl_->decide(e);
  return Recompute{};
}
std::string Policy::str() const { return record_ ? record_->name : impl_ ? impl_->text : "none"; }
std::string Policy::jax_repr() const {
  return record_ ? record_->repr : impl_ ? impl_->repr : "None";
}
std::string Policy::key() const { return record_ ? record_->name : impl_ ? impl_->key : "none"; }
std::vector<std::string> Policy::names() const {
  return impl_ ? impl_->names : std::vector<std::string>{};
}
std::vector<Policy> Policy::alternatives() const {
  if (impl_ == nullptr || impl_->any_of.empty()) return {*this};
  std::vector<Policy> all;
  for (const Policy& p : impl_->any_of) {
    for (const Policy& q : p.alternatives()) all.push_back(q);
  }
  return all;
}
std::ostream& operator<<(std::ostream& out, const Policy& p) { return out << p.str(); }

Policy operator|(const Policy& a, const Policy& b) {
  const std::string text = "(" + a.str() + " | " + b.str() + ")";
  return make(text, function_repr(text), "(" + a.key() + "|" + b.key() + ")", names_of(a, b),
              [a, b](const EquationInfo& e) -> Policy::Answer {
                const Policy::Answer x = a(e), y = b(e);
                if (std::holds_alternative<Saveable>(x) || std::holds_alternative<Saveable>(y))
                  return Saveable{};
                return saves(x) ? x : y;
              },
              {a, b});
}
Policy operator&(const Policy& a, const Policy& b) {
  const std::string text = "(" + a.str() + " & " + b.str() + ")";
  return make(text, function_repr(text), "(" + a.key() + "&" + b.key() + ")", names_of(a, b),
              [a, b](const EquationInfo& e) -> Policy::Answer {
                const Policy::Answer x = a(e), y = b(e);
                if (!saves(x) || !saves(y)) return Recompute{};
                return std::holds_alternative<Offloadable>(x) ? x : y;
              });
}
Policy operator!(const Policy& a) {
  const std::string text = "!" + a.str();
  return make(text, function_repr(text), "!" + a.key(), a.names(),
              [a](const EquationInfo& e) { return when(!saves(a(e))); });
}

namespace checkpoint_policies {

Policy save_only_these_names_list(Names names) {
  return make("save_only_these_names(" + quoted(names) + ")",
              "SaveOnlyTheseNames(saveable_names=" + frozenset(names) + ")",
              key_of("save_only_these_names", names), names, [names](const EquationInfo& e) {
                return when(e.primitive == "name" && contains(names, e.name));
              });
}
Policy save_any_names_but_these_list(Names names) {
  return make("save_any_names_but_these(" + quoted(names) + ")",
              "SaveAnyNamesButThese(names=" + frozenset(names) + ")",
              key_of("save_any_names_but_these", names), names, [names](const EquationInfo& e) {
                return when(e.primitive == "name" && !contains(names, e.name));
              });
}
Policy save_anything_except_these_names_list(Names names) {
  return make("save_anything_except_these_names(" + quoted(names) + ")",
              "<function save_anything_except_these_names.<locals>.<lambda> at 0xXXXXXXXXXXXX>",
              key_of("save_anything_except_these_names", names), names,
              [names](const EquationInfo& e) {
                const auto excluded = [&](const std::string& n) { return contains(names, n); };
                return when(std::none_of(e.output_names.begin(), e.output_names.end(), excluded));
              });
}

Policy save_from_both_policies(const Policy& a, const Policy& b) {
  const std::string text = "save_from_both_policies(" + a.str() + ", " + b.str() + ")";
  return make(
      text, factory_repr("save_from_both_policies"), "both(" + a.key() + "," + b.key() + ")",
      names_of(a, b),
      [a, b](const EquationInfo& e) {
        const Policy::Answer x = a(e), y = b(e);
        if (std::holds_alternative<Offloadable>(x) || std::holds_alternative<Offloadable>(y)) {
          fail_with_hint<TypeError>("combine policies that offload with operator |",
                                    "save_from_both_policies: both policies must answer yes or no, "
                                    "got an Offloadable");
        }
        return when(saves(x) || saves(y));
      },
      {a, b});
}

Policy offload_dot_with_no_batch_dims(const std::string& src, const std::string& dst) {
  return make("offload_dot_with_no_batch_dims('" + src + "', '" + dst + "')",
              factory_repr("offload_dot_with_no_batch_dims"),
              key_of("offload_dot_with_no_batch_dims", {src, dst}), {},
              [=](const EquationInfo& e) -> Policy::Answer {
                if (is_plain_dot(e)) return Offloadable{src, dst};
                return Recompute{};
              });
}

Policy save_and_offload_only_these_names(const SaveAndOffload& o) {
  for (const std::string& n : o.names_which_can_be_offloaded) {
    if (contains(o.names_which_can_be_saved, n)) {
      fail<TypeError>(
          "save_and_offload_only_these_names: a name can be saved or offloaded, not both, got '", n,
          "' in both lists");
    }
  }
  Names all = o.names_which_can_be_saved;
  all.insert(all.end(), o.names_which_can_be_offloaded.begin(),
             o.names_which_can_be_offloaded.end());
  const std::string text = "save_and_offload_only_these_names(saved=[" +
                           quoted(o.names_which_can_be_saved) + "], offloaded=[" +
                           quoted(o.names_which_can_be_offloaded) + "], '" + o.offload_src +
                           "', '" + o.offload_dst + "')";
  const std::string key = key_of("save", o.names_which_can_be_saved) +
                          key_of("offload", o.names_which_can_be_offloaded) +
                          key_of("from", {o.offload_src, o.offload_dst});
  return make(text, factory_repr("save_and_offload_only_these_names"), key, all,
              [o](const EquationInfo& e) -> Policy::Answer {
                if (e.primitive != "name") return Recompute{};
                if (contains(o.names_which_can_be_saved, e.name)) return Saveable{};
                if (contains(o.names_which_can_be_offloaded, e.name)) {
                  return Offloadable{o.offload_src, o.offload_dst};
                }
                return Recompute{};
              });
}

Policy bytes_at_least(std::size_t bytes) {
  const std::string text = str("bytes_at_least(", bytes, ")");
  return make(text, function_repr(text), text, {},
              [bytes](const EquationInfo& e) { return when(e.output_bytes() >= bytes); });
}
Policy bytes_at_most(std::size_t bytes) {
  const std::string text = str("bytes_at_most(", bytes, ")");
  return make(text, function_repr(text), text, {},
              [bytes](const EquationInfo& e) { return when(e.output_bytes() <= bytes); });
}

}  // namespace checkpoint_policies

Policy within_budget(const Policy& base, std::size_t bytes) {
  const std::string of = base.defined() ? ", " + base.str() : "";
  const std::string repr = base.defined() ? ", " + base.jax_repr() : "";
  PolicyImpl impl{[base](const EquationInfo& e) {
                    return base.defined() ? base(e) : Policy::Answer(Saveable{});
                  },
                  str("save_within_budget(", bytes, of, ")"),
                  str("save_within_budget(", bytes, repr, ")"),
                  str("budget:", bytes, ":", base.key(), ";"), base.names()};
  impl.budget = PolicyBudget{base, bytes};
  return Policy(std::make_shared<const PolicyImpl>(std::move(impl)));
}
std::optional<PolicyBudget> budget_of(const Policy& policy) {
  return policy.impl() == nullptr ? std::nullopt : policy.impl()->budget;
}

}  // namespace reprise
