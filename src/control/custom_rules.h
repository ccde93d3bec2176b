// Functions with derivative rules of their own.
#pragma once

#include <functional>

#include "program/trace.h"

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

Arrays custom_jvp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const JvpRule> rule, const Arrays& args);
Arrays custom_vjp_call(const std::string& name, const FlatFunction& f,
                       std::shared_ptr<const FwdRule> fwd, std::shared_ptr<const BwdRule> bwd,
                       const Arrays& args);

}  // namespace reprise
