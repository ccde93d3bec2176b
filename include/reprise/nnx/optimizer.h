// Optimizer: an optimiser of optim.h together with its state, as a module.
//
//   nnx::Optimizer optimizer(model, rp::optim::adamw(1e-3), nnx::OfType<nnx::Param>);
//   auto [loss, grads] = nnx::value_and_grad(loss_of)(model, x);
//   optimizer.update(model, grads);
#pragma once

#include "reprise/nnx/graph.h"
#include "reprise/optim.h"

#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// Changes a model by gradients; its state is made of variables, so that transforms can carry it.
class Optimizer final : public Module {
 public:
  // For the variables of the model that `wrt` chooses.
  Optimizer(const Module& model, optim::GradientTransformation tx, const Filter& wrt,
            Location at = Location::current());
  template <class T>
  Optimizer(const Module&, const T&) {
    static_assert(!std::is_same_v<T, T>,
                  "nnx::Optimizer needs wrt, which variables it updates: "
                  "nnx::Optimizer(model, tx, nnx::OfType<nnx::Param>)");
  }

  // One step: new values for the variables of the model, from the gradients at the same paths. A
  // TypeError unless these are the variables that `wrt` chooses.
  void update(const Module& model, const State& grads, Location at = Location::current());
  template <class T>
  void update(const T&) {
    static_assert(!std::is_same_v<T, T>,
                  "nnx::Optimizer::update needs the model too: update(model, grads)");
  }

  OptState step;  // updates made so far
  reprise::Dict opt_state() const;

  void reprise_visit(Fields& out) override;
  std::shared_ptr<Module> reprise_copy() const override {
    return std::make_shared<Optimizer>(*this);
  }

 private:
  // A variable, or more of them by name.
  struct Node {
    Key key;
    Variable variable;
    std::vector<Node> children;
  };
  static std::vector<Node> nodes_of(const reprise::Dict& values, const KeyPath& prefix,
                                    const NamedLeaves& params);
  static reprise::Dict dict_of(const std::vector<Node>& nodes);
  static void assign(const std::vector<Node>& nodes, const reprise::Dict& values);
  static void visit(std::vector<Node>& nodes, Fields& out);

  Static<optim::GradientTransformation> tx_;
  Filter wrt_;
  std::vector<Node> opt_state_;
};

}  // namespace reprise::nnx
#pragma GCC visibility pop
