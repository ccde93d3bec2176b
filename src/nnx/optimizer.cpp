#include "reprise/nnx/optimizer.h"

#include "reprise/errors.h"

#include <algorithm>

namespace reprise::nnx {
namespace {

std::string text_of(const Key& key) {
  return key.is_name() ? key.name() : std::to_string(key.position());
}
// Positions of chains and lists, which dictionaries hold as text.
Key key_of(const std::string& text) {
  const bool number = !text.empty() && text.size() < 10 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return number ? Key(std::stoll(text)) : Key(text);
}
bool ends_with(const KeyPath& path, const KeyPath& end) {
  return path.size() > end.size() && std::equal(end.rbegin(), end.rend(), path.rbegin());
}

}  // namespace

Optimizer::Optimizer(const Module& model, optim::GradientTransformation tx, const Filter& wrt,
                     Location at)
    : step(array(0, uint32)), tx_(std::move(tx)), wrt_(wrt) {
  const NamedLeaves params = named_leaves(state(model, wrt_));
  opt_state_ = nodes_of(tx_->init_leaves(params, at), {}, params);
}

std::vector<Optimizer::Node> Optimizer::nodes_of(const reprise::Dict& values, const KeyPath& prefix,
                                                 const NamedLeaves& params) {
  std::vector<Node> nodes;
  for (const auto& [name, item] : values.items()) {
    KeyPath path = prefix;
    path.push_back(name);
    Node node{key_of(name), {}, {}};
    if (const auto* inner = std::get_if<reprise::Dict>(&item)) {
      node.children = nodes_of(*inner, path, params);
    } else {
      const Array& value = std::get<Array>(item);
      const bool of_param = std::any_of(params.paths.begin(), params.paths.end(),
                                        [&](const KeyPath& p) { return ends_with(path, p); });
      if (of_param) {
        node.variable = OptVariable(value);
      } else {
        node.variable = OptArray(value);
      }
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

reprise::Dict Optimizer::dict_of(const std::vector<Node>& nodes) {
  reprise::Dict dict;
  for (const Node& node : nodes) {
    if (node.variable.defined()) {
      dict[text_of(node.key)] = node.variable.get_value();
    } else {
      dict[text_of(node.key)] = dict_of(node.children);
    }
  }
  return dict;
}
void Optimizer::assign(const std::vector<Node>& nodes, const reprise::Dict& values) {
  for (const Node& node : nodes) {
    if (node.variable.defined()) {
      node.variable.set_value(values.array(text_of(node.key)));
    } else {
      assign(node.children, values.dict(text_of(node.key)));
    }
  }
}
void Optimizer::visit(std::vector<Node>& nodes, Fields& out) {
  for (Node& node : nodes) {
    if (node.variable.defined()) {
      out.add(node.key, node.variable);
    } else {
      Fields inner;
      visit(node.children, inner);
      out.list().push_back({node.key, std::move(inner.list())});
    }
  }
}

reprise::Dict Optimizer::opt_state() const { return dict_of(opt_state_); }

void Optimizer::update(const Module& model, const State& grads, Location at) {
  const AtUser scope(at);
  const State params = state(model, wrt_);
  if (params.size() != grads.size()) {
    fail<TypeError>("optimizer: there must be a gradient for each variable that wrt chooses, got ",
                    grads.size(), " for ", params.size());
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params.leaf(i).path != grads.leaf(i).path) {
      fail<TypeError>(
          "optimizer: there must be a gradient for each variable that wrt chooses, got ",
          to_string(grads.leaf(i).path), " for ", to_string(params.leaf(i).path));
    }
  }
  const NamedLeaves before = named_leaves(params), gradients = named_leaves(grads);
  auto [updates, next] = tx_->update_leaves(gradients, opt_state(), before, at);
  const Arrays after = optim::apply_updates_to(before, {gradients.paths, updates}, at);
  std::vector<Leaf> leaves = params.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].value = after[i];
  nnx::update(model, State(std::move(leaves)));
  assign(opt_state_, next);
  step.set_value(step.get_value() + array(1, uint32));
}

void Optimizer::reprise_visit(Fields& out) {
  out.add("step", step);
  out.add("tx", tx_);
  Fields inner;
  visit(opt_state_, inner);
  out.list().push_back({"opt_state", std::move(inner.list())});
}

}  // namespace reprise::nnx
