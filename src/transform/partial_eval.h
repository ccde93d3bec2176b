// Splitting a program by what is known now and what comes later, with a policy that says which
// known values the later part may keep and which it computes again.
//
//   p: (a1, a2) -> (b1, b2),  a2 unknown
//     =>  known:  a1 -> (b1, residuals)      staged: (residuals, a1, a2) -> b2
//
// Every input is available to the staged part; it drops those it does not read. This is the only
// partial evaluator: what a loop computes before its first step is split off by it, too
// (split_invariant).
#pragma once

#include "program/primitive.h"

#include <functional>
#include <string>
#include <variant>

namespace reprise {

struct Keep {};
struct Repeat {};
struct Offload {
  std::string source, destination;
};
using SplitDecision = std::variant<Repeat, Keep, Offload>;

// Names that label the outputs of an equation, directly or through other names.
using OutputNames = std::vector<std::string>;
struct SplitPolicy {
  std::function<SplitDecision(const Program&, const Equation&, const OutputNames&)> decide;
  std::string key;  // equal keys decide alike; splits are shared per key, empty: not shared
};

// by_policy: as the policy says, bodies of calls included. once: nothing is repeated; what is known
// is computed once, what the rest needs of it is saved, and a nested checkpoint follows its own
// policy.
enum class SplitMode : std::uint8_t { by_policy, once };

struct PolicySplit {
  Program known;  // inputs: the known ones; outputs: known outputs, residuals
  // inputs: residuals, then the available ones; outputs: available
  Program staged;
  std::size_t residuals = 0;
  std::vector<bool> unknown_out;    // per output of p
  std::vector<bool> available_out;  // per output of p: staged returns it
};

struct SplitOutputs {
  std::vector<bool> unknown = {};  // outputs to treat as unknown though they are not
  bool all_available = false;      // the staged part returns every output
};

// The state of one split, for the rules of calls.
class Split {
 public:
  Split(const Program& p, const std::vector<bool>& unknown_in,
        const std::vector<bool>& available_in, SplitPolicy policy, SplitMode mode);
  static Split invariant(const Program& p, const std::vector<bool>& varying_in);

  const Program& from() const { return p_; }
  const SplitPolicy& policy() const { return policy_; }
  SplitMode mode() const { return mode_; }
  bool is_by_policy() const { return mode_ == SplitMode::by_policy; }
  bool is_invariant() const { return is_invariant_; }  // of split_invariant
  const Type& type(Var v) const { return types_[at(v)]; }
  std::vector<bool> unknown_mask(const std::vector<Atom>&) const;
  std::vector<bool> available_mask(const std::vector<Atom>&) const;
  bool is_unknown(const Atom& a) const { return a.is_var() && unknown_[at(a.var)]; }
  bool is_available(const Atom& a) const { return !a.is_var() || available_[at(a.var)]; }
  Var fresh(const Type& t);
  void add_known(Equation e) { known_.push_back(std::move(e)); }
  void add_staged(Equation e);    // operands it lacks become residuals
  void stage(const Equation& e);  // all of it, and its results are unknown
  void set(Var v, bool unknown, bool available);
  void save(Var v);
  void alias(Var v, const Atom& a) { alias_[at(v)] = a; }  // v is just another name of a
  void split_plain(const Equation& e);
  // Adds the equations of a program to the known side, its inputs standing for `args`; its outputs.
  std::vector<Atom> splice_known(const Program& p, const std::vector<Atom>& args);
  // Splits the equations of a call's body in the place of the call.
  void split_opened(const Equation& call, const Program& body);
  PolicySplit finish(const SplitOutputs& outputs);
  void run();

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }
  Atom resolved(const Atom& a) const { return a.is_var() ? alias_[at(a.var)] : a; }
  OutputNames names_of(const Equation& e) const;
  void split_equation(Equation e);
  void repeat_effect(const Equation& e, const SplitDecision& decision);
  void sort_residuals(Program& staged);

  const Program& p_;
  SplitPolicy policy_;
  std::vector<Type> types_;
  SplitMode mode_;
  bool is_invariant_ = false;
  std::vector<bool> unknown_in_, available_in_, unknown_, available_;
  std::vector<Atom> alias_;
  std::vector<Equation> known_, staged_;
  std::vector<Var> residuals_;
  std::vector<bool> is_residual_;
  std::vector<OutputNames> names_;  // per variable of p
};

PolicySplit split(const Program& p, const std::vector<bool>& unknown_in,
                  const std::vector<bool>& available_in, const SplitPolicy& policy, SplitMode mode,
                  const SplitOutputs& outputs = {});
// What does not vary from step to step of a loop is known, what varies is staged, with the effects,
// which happen at every step. As in JAX: calls of jit are split also when nothing in them is known
// (which leaves an empty call on the known side), functions with a forward rule of their own are
// opened, and residuals come in the order of their first use.
PolicySplit split_invariant(const Program& p, const std::vector<bool>& varying_in,
                            const SplitOutputs& outputs = {});
// The same as split of a call's body, shared per (body, masks, policy): rules ask more than once, level for
// level.
std::shared_ptr<const PolicySplit> shared_split(const Program& body,
                                                const std::vector<bool>& unknown_in,
                                                const std::vector<bool>& available_in,
                                                const SplitPolicy& policy, SplitMode mode,
                                                const SplitOutputs& outputs = {});
// The staged part returns only what is unknown. A known output that is a literal is available, too:
// the branches of a cond would differ in the number of their outputs.
void drop_known_outputs(PolicySplit& parts);

// Parts of a linear program that do not depend on its linear inputs, computed first.
//   p: (a, linear b) -> c   =>   known: a -> residuals,   linear: (residuals, b) -> c
struct Unzipped {
  ProgramPtr known;   // known outputs come first
  ProgramPtr linear;  // returns only outputs that depend on linear inputs
  std::vector<bool> unknown_out;
};
std::shared_ptr<const Unzipped> unzip(const Program& p, const std::vector<bool>& is_linear);

}  // namespace reprise
