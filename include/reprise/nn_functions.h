// Activation functions, with the names and definitions of jax.nn.
#pragma once

#include "reprise/array.h"

namespace reprise::nn {

Array relu(Operand x);  // max(x, 0); derivative 0 at 0
Array relu6(Operand x);
Array sigmoid(Operand x);
Array log_sigmoid(Operand x);
Array softplus(Operand x);  // log(1 + exp(x))
Array silu(Operand x);      // x * sigmoid(x)
Array swish(Operand x);     // the same
Array elu(Operand x, Operand alpha = 1.0);
Array leaky_relu(Operand x, Operand negative_slope = 0.01);
Array gelu(Operand x, bool approximate = true);  // tanh form by default, else the exact one
Array softmax(Operand x, std::int64_t axis = -1);
Array log_softmax(Operand x, std::int64_t axis = -1);
Array one_hot(Operand x, std::int64_t num_classes, Dtype dtype = float32, std::int64_t axis = -1);
// (x - mean) / sqrt(var + epsilon) along an axis.
Array standardize(Operand x, std::int64_t axis = -1, double epsilon = 1e-5);

}  // namespace reprise::nn
