// Functions with derivative rules of their own.
#pragma once

#include "program/trace.h"

#include <functional>

namespace reprise {

// A user's rule as a param: prints its name; equal only to itself.
struct NamedRule : OpaqueParam {
  explicit NamedRule(std::string n) : name(std::move(n)) {}
  std::string name;
  std::string text() const override { return name; }
  bool equal(const OpaqueParam& other) const override { return this == &other; }
};
struct JvpRule : NamedRule {
  using Function = std::function<std::pair<Arrays, Arrays>(const Arrays& x, const Arrays& dx)>;
  JvpRule(std::string n, Function f) : NamedRule(std::move(n)), run(std::move(f)) {}
  Function run;
};
struct FwdRule : NamedRule {  // x -> (y, residuals)
  using Function = std::function<std::pair<Arrays, Arrays>(const Arrays& x)>;
  FwdRule(std::string n, Function f) : NamedRule(std::move(n)), run(std::move(f)) {}
  Function run;
};
struct BwdRule : NamedRule {  // (residuals, ct) -> cotangents of x
  using Function = std::function<Arrays(const Arrays& residuals, const Arrays& cts)>;
  BwdRule(std::string n, Function f) : NamedRule(std::move(n)), run(std::move(f)) {}
  Function run;
};

// The rule that a param holds; in a program read from text it is only a name.
template <class Rule>
std::shared_ptr<const Rule> rule_of(const char* op, const Params& params, const char* key) {
  const Attr* value = params.find(key);
  if (value == nullptr || !std::holds_alternative<OpaquePtr>(*value)) {
    fail<RuleError>(op, ": a program read from text knows only the name of its rule, got ", key,
                    "=", value == nullptr ? "nothing" : python_text(*value));
  }
  return params.get_opaque<Rule>(key);
}
// How many leading operands the function closed over; not printed when there are none.
inline std::size_t num_consts(const Params& params) {
  return static_cast<std::size_t>(params.get<std::int64_t>("num_consts"));
}
inline void check_num_consts(const char* op, const Params& params, std::size_t operands) {
  const auto count = params.get<std::int64_t>("num_consts");
  if (count >= 0 && static_cast<std::size_t>(count) <= operands) return;
  fail<TypeError>(op, ": num_consts must count leading operands, got ", count, " for ", operands);
}
// Those of the params that there are, in the order of `keys`.
inline std::vector<Param> in_order(const Params& params, std::initializer_list<const char*> keys) {
  std::vector<Param> out;
  for (const char* key : keys) {
    const Attr* value = params.find(key);
    const bool is_no_consts = std::string_view(key) == "num_consts" && num_consts(params) == 0;
    if (value != nullptr && !is_no_consts) out.push_back({key, *value});
  }
  return out;
}

Arrays custom_jvp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const JvpRule> rule, const Arrays& args);
Arrays custom_vjp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const FwdRule> fwd, std::shared_ptr<const BwdRule> bwd,
                       const Arrays& args);

}  // namespace reprise
