#include "reprise/errors.h"
#include "reprise/nn_sequential.h"
#include "reprise/ops.h"

namespace reprise::nn {

Sequential::Sequential(std::vector<Layer> layers, std::string name, Location at)
    : Module(std::move(name), at), layers_(std::move(layers)) {}

void Sequential::visit_submodules(const detail::SubmoduleVisitor& visit) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (ModuleBase* module = layers_[i].module()) visit("layers_" + std::to_string(i), *module);
  }
}

Array Sequential::call(Array x) {
  if (layers_.empty()) {
    const AtUser at(made_at());
    fail<TypeError>("Sequential: at least one layer is needed, got none");
  }
  for (Layer& layer : layers_) x = layer(x);
  return x;
}

PReLU::PReLU(PReLUFields fields, Location at)
    : Module(fields.name, at), fields_(std::move(fields)) {}

Array PReLU::call(Array x) {
  const AtUser at(made_at());
  const auto init = initializers::constant(fields_.negative_slope_init, fields_.param_dtype);
  const Array slope = param("negative_slope", init, {}, fields_.param_dtype);
  const Array is_positive = x >= 0;
  const Array below = slope.astype(x.dtype()) * x;
  return where(is_positive, x, below);
}

}  // namespace reprise::nn
