// What all lifted transformations share: variables and keys of the scopes outside become trees of
// arrays, the transformed function runs on fresh scopes inside, what it changed is written back.
#pragma once

#include "nn/module_state.h"
#include "reprise/nn_lift.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::nn::detail {

using Scopes = std::vector<ScopePtr>;
// The function being lifted, on scopes.
using OnScopes = std::function<Arrays(const Scopes&, const Arrays& leaves)>;

class Boundary {
 public:
  // `name` is that of the transformation, for messages; collections outside of `changes` are
  // read-only inside.
  Boundary(const Scopes& outside, const std::string& name, const Filter& changes);

  // The collections that match, below the paths of the scopes.
  Dict variables(const Filter& filter) const;
  // Root keys: number of the scope -> stream -> key.
  Dict streams(const Filter& filter) const;

  // Runs the body on scopes with these variables and keys: its result, and the variables that could
  // change. May run several times; each begins with the same numbers of drawn keys.
  std::pair<Arrays, Dict> run(const Dict& variables, const Dict& streams,
                              const std::function<Arrays(const Scopes&)>& body) const;
  // The keys drawn so far count for later runs.
  void count_from_here();
  void write_back(const Dict& changed) const;
  // Keys inside depend on names pushed inside only.
  void forget_names() { keeps_names_ = false; }

 private:
  Dict below_paths(const Dict& variables, const Filter& filter) const;

  Scopes outside_;
  std::string name_;
  Filter changes_;
  std::vector<Counters> drawn_;
  bool keeps_names_ = true;
};

Arrays lift_remat(const RematOptions&, const Scopes&, const LiftedArgs&, const OnScopes&);
Arrays lift_scan(const LiftScanOptions&, const Scopes&, const LiftedArgs&, const OnScopes&);
Arrays lift_vmap(const LiftVmapOptions&, const Scopes&, const LiftedArgs&, const OnScopes&);
Arrays lift_jit(const LiftJitOptions&, const Scopes&, const LiftedArgs&, const OnScopes&);
Arrays lift_remat_scan(const RematScanOptions&, const Scopes&, const LiftedArgs&, const OnScopes&);

// Collections by the axis they are stacked along, and what happens to them: shared by scan and
// vmap. Each collection belongs to the first filter that matches.
struct VariableGroup {
  Filter filter;
  std::optional<std::int64_t> axis;
};
std::vector<VariableGroup> groups_in(const VariableAxes& axes);
std::vector<VariableGroup> groups_out(const VariableAxes& axes);
Filter all_of(const std::vector<VariableGroup>& groups);
// The group's axis for a collection; `found` tells whether any filter matches.
struct GroupAxis {
  bool found = false;
  std::optional<std::int64_t> axis;
};
GroupAxis axis_for(const std::vector<VariableGroup>& groups, const std::string& collection);

// The collections of a tree for which keep says so.
Dict collections_if(const Dict& tree, const std::function<bool(const std::string&)>& keep);
// Moves the stacked axis of each collection to the front, or from the front back.
Dict axes_to_front(const Dict& tree, const std::vector<VariableGroup>& groups);
Dict axes_from_front(const Dict& tree, const std::vector<VariableGroup>& groups);
Array axis_to_front(const Array& x, std::int64_t axis);
Array axis_from_front(const Array& x, std::int64_t axis);

struct SplitStreams {
  Dict split, shared;  // a key for each step, or one for all
};
SplitStreams split_streams(const Boundary& boundary, const SplitRngs& rngs, std::int64_t count);

// The axis of argument i: one for all, or one each.
std::optional<std::int64_t> axis_of_argument(const char* op, const Axes& axes, std::size_t i,
                                             std::size_t count);

}  // namespace reprise::nn::detail
