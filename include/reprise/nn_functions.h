// Activation functions, with the names and definitions of jax.nn.
#pragma once

#include "reprise/array.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

#pragma GCC visibility push(default)
namespace reprise::nn {

// Of jax.numpy, and also here as in jax.nn.
using reprise::logsumexp;
using reprise::tanh;

// ------------------------------------------------------------------------------------ elementwise
Array identity(Operand x);
Array relu(Operand x);  // max(x, 0); derivative 0 at 0
Array relu6(Operand x);
Array sigmoid(Operand x);
Array log_sigmoid(Operand x);
Array softplus(Operand x);  // log(1 + exp(x))
Array silu(Operand x);      // x * sigmoid(x)
Array swish(Operand x);     // the same
Array mish(Operand x);      // x * tanh(softplus(x))
Array elu(Operand x, Operand alpha = 1.0);
Array celu(Operand x, Operand alpha = 1.0);  // max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)
Array selu(Operand x);                       // elu with the scales that keep mean 0 and variance 1
Array leaky_relu(Operand x, Operand negative_slope = 0.01);
Array gelu(Operand x, bool approximate = true);  // tanh form by default, else the exact one
Array soft_sign(Operand x);                      // x / (|x| + 1)
Array squareplus(Operand x, Operand b = 4);      // (x + sqrt(x^2 + b)) / 2
Array sparse_plus(Operand x);                    // softplus that is 0 below -1 and x above 1
Array sparse_sigmoid(Operand x);                 // its derivative
Array hard_tanh(Operand x);                      // x cut at -1 and 1
Array hard_sigmoid(Operand x);                   // relu6(x + 3) / 6
Array hard_silu(Operand x);                      // x * hard_sigmoid(x)
Array hard_swish(Operand x);                     // the same
Array log1mexp(Operand x);                       // log(1 - exp(-x)) for x > 0

// ----------------------------------------------------------------------------------- along an axis
// The first half times the sigmoid of the second; a TypeError if the size is odd.
Array glu(Operand x, std::int64_t axis = -1);
Array softmax(Operand x, std::int64_t axis = -1);
Array log_softmax(Operand x, std::int64_t axis = -1);
Array logmeanexp(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array one_hot(Operand x, std::int64_t num_classes, Dtype dtype = float32, std::int64_t axis = -1);
// (x - mean) / sqrt(var + epsilon) along an axis.
Array standardize(Operand x, std::int64_t axis = -1, double epsilon = 1e-5);

}  // namespace reprise::nn
#pragma GCC visibility pop
