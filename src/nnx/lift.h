// Lifting a function of modules to a function of arrays, and back.
//
//   target: f(modules, values) -> result
//      =>  run: values of variables and arguments -> values of the result and of changed variables
//
// While it runs, the variables hold the given (traced) values; afterwards, also after an exception,
// they hold what they held. `finish` then writes the values that the transformed program computed.
#pragma once

#include "nnx/walk.h"
#include "reprise/nnx/call.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::nnx::detail {

class Lift {
 public:
  // A place that gets a value from the transformed program.
  struct Output {
    Slot slot;
    bool is_result = false;
    std::size_t root = 0;                   // of the arguments or of the result
    std::optional<std::size_t> input = {};  // the input that it replaces
  };

  explicit Lift(Target& target);
  const std::vector<Slot>& inputs() const { return inputs_; }
  std::size_t arguments() const { return arguments_; }
  std::size_t root(std::size_t input) const { return root_of(inputs_[input]); }
  std::vector<std::size_t> roots() const;
  // An array that only this call holds; variables are shared even with copies of their module.
  bool is_local(std::size_t input) const { return !inputs_[input].box && local_[root(input)]; }
  Leaf leaf(std::size_t input) const;  // its path within the argument
  Arrays values() const;
  // Structure and static values of the arguments: equal texts, equal programs.
  const std::string& description() const { return description_; }

  // Runs the function with values for the inputs; the outputs are known afterwards.
  Arrays run(const Arrays& values);
  reprise::detail::Callee callee(const std::vector<std::string>& names = {});  // of the arguments
  const std::vector<Output>& outputs() const { return outputs_; }
  // The function changed static values or the structure of its arguments.
  bool changed_structure() const { return changed_structure_; }
  // Lets go of inputs that the outputs replace, or that nobody reads again.
  void release(const std::vector<std::size_t>& inputs);
  // Writes the values of the outputs.
  void finish(const Arrays& values);
  // As if the function had run with these outputs; the result is the target's.
  void assume_outputs(const std::vector<Output>& like);

  Target& target() { return target_; }

 private:
  class Swap;
  static std::size_t root_of(const Slot& slot) {
    return static_cast<std::size_t>(slot.path[0].position());
  }
  void find_outputs(const Arrays& values, const Roots& after, const std::string& text_before);

  Target& target_;
  std::vector<Slot> inputs_;
  std::size_t arguments_ = 0;
  std::vector<bool> local_;
  std::string description_;
  std::vector<Output> outputs_;
  bool changed_structure_ = false;
};

}  // namespace reprise::nnx::detail
