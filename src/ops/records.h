// The records of all basic primitives. Families define them: ops/<family>.cpp.
#pragma once

#include "program/primitive.h"

#include <span>

namespace reprise {

// Functions of one floating number: a name here, a record in unary.cpp, and a declaration in
// reprise/lax.h are all that one needs. The lax function, the list of primitives and the machine
// code follow.
#define REPRISE_FLOATING_FUNCTIONS(use)                                                            \
  use(exp) use(exp2) use(log) use(log1p) use(expm1) use(sin) use(cos) use(tan) use(asin) use(acos) \
      use(atan) use(sinh) use(cosh) use(tanh) use(asinh) use(acosh) use(atanh) use(logistic)       \
          use(sqrt) use(rsqrt) use(cbrt) use(erf) use(erfc) use(erf_inv)
#define REPRISE_DECLARE_RECORD(name) extern const Primitive name##_p;
REPRISE_FLOATING_FUNCTIONS(REPRISE_DECLARE_RECORD)
#undef REPRISE_DECLARE_RECORD
extern const Primitive  // unary.cpp
    neg_p,
    sign_p, abs_p, floor_p, ceil_p, round_p, square_p, integer_pow_p, is_finite_p, not_p,
    one_minus_square_p;
extern const Primitive  // special.cpp
    lgamma_p,
    digamma_p, polygamma_p, zeta_p, igamma_p, igammac_p, igamma_grad_a_p, random_gamma_grad_p,
    regularized_incomplete_beta_p, bessel_i0e_p, bessel_i1e_p, polynomial_p, log2_p,
    population_count_p, clz_p, lt_to_p, le_to_p;
extern const Primitive debug_print_p;  // debug_print.cpp
extern const Primitive                 // binary.cpp
    add_p,
    add_any_p, sub_p, mul_p, div_p, rem_p, pow_p, atan2_p, max_p, min_p, nextafter_p, and_p, or_p,
    xor_p, shift_left_p, shift_right_logical_p, shift_right_arithmetic_p, eq_p, ne_p, lt_p, le_p,
    gt_p, ge_p;
extern const Primitive  // select.cpp
    select_n_p,
    clamp_p;
extern const Primitive  // convert.cpp
    convert_element_type_p,
    bitcast_convert_type_p, reduce_precision_p, stop_gradient_p, copy_p, optimization_barrier_p;
extern const Primitive  // constant.cpp
    iota_p,
    empty_p, empty2_p, platform_index_p;
extern const Primitive  // shape.cpp
    broadcast_in_dim_p,
    reshape_p, transpose_p, squeeze_p, rev_p,
    permuted_reshape_p;  // reshape[dimensions=(1, 0)], which only texts have
extern const Primitive   // join.cpp
    concatenate_p,
    stack_p, unstack_p, split_p, tile_p, pad_p;
extern const Primitive  // slice.cpp
    slice_p,
    dynamic_slice_p, dynamic_update_slice_p;
extern const Primitive  // gather.cpp, scatter.cpp
    gather_p,
    scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p;
extern const Primitive  // reduce.cpp, cumulative.cpp, sort.cpp, window.cpp
    reduce_sum_p,
    reduce_prod_p, reduce_max_p, reduce_min_p, reduce_and_p, reduce_or_p, argmax_p, argmin_p,
    reduce_xor_p, cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p, sort_p, top_k_p,
    reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p, select_and_scatter_add_p,
    select_and_gather_add_p;
extern const Primitive  // random.cpp
    random_seed_p,
    random_wrap_p, random_unwrap_p, random_split_p, random_fold_in_p, random_bits_p, threefry2x32_p,
    threefry_bits_p, random_clone_p;
extern const Primitive dot_general_p;           // dot.cpp
extern const Primitive conv_general_dilated_p;  // conv.cpp
extern const Primitive name_p;                  // name.cpp
extern const Primitive device_put_p;            // device_put.cpp
extern const Primitive                          // collective.cpp
    pvary_p,
    psum_invariant_p, pmax_p, pmin_p, all_gather_p, all_gather_invariant_p, reduce_scatter_p,
    ppermute_p, all_to_all_p, axis_index_p;

// All of the above, for the parser and the table of rules.
std::span<const Primitive* const> basic_primitives();

}  // namespace reprise
