// Products of a vector and a matrix in f32, rounded as XLA rounds them on x86 CPUs: sums run in its
// order and with its fused multiply-adds, so that a dense layer applied to one vector gives the
// bits of JAX. Products of matrices have no fixed order there, and none here.
#pragma once

#include <cstdint>

namespace reprise {

// out[j] = sum over i of v[i] * m[i, j]; m is k x n
void vector_times_matrix(const float* v, const float* m, float* out, std::int64_t k,
                         std::int64_t n);
// out[i] = sum over j of m[i, j] * v[j]; m is n x k
void matrix_times_vector(const float* m, const float* v, float* out, std::int64_t n,
                         std::int64_t k);

}  // namespace reprise
