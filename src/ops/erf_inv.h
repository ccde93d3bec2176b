// The inverse of the error function with the polynomials that XLA evaluates, so that random normal
// values equal JAX's bit for bit.
#pragma once

namespace reprise {

float inverse_erf(float x);    // the same bits as XLA on CPU
double inverse_erf(double x);  // Giles' three-branch approximation

}  // namespace reprise
