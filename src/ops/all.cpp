#include "ops/random.h"
#include "ops/records.h"

namespace reprise {

std::span<const Primitive* const> basic_primitives() {
  // clang-format off
#define REPRISE_LIST_RECORD(name) &name##_p,
  static constexpr const Primitive* all[] = {  // a family per paragraph, as in records.h
      &neg_p, &sign_p, &abs_p, &floor_p, &ceil_p, &round_p,
      REPRISE_FLOATING_FUNCTIONS(REPRISE_LIST_RECORD)
      &square_p, &integer_pow_p, &is_finite_p, &not_p, &log2_p,
      &one_minus_square_p, &population_count_p, &clz_p,
      &lgamma_p, &digamma_p, &polygamma_p, &zeta_p, &igamma_p, &igammac_p, &igamma_grad_a_p,
      &random_gamma_grad_p, &regularized_incomplete_beta_p, &bessel_i0e_p, &bessel_i1e_p,
      &polynomial_p,
      &add_p, &add_any_p, &sub_p, &mul_p, &div_p, &rem_p, &pow_p, &atan2_p, &max_p, &min_p,
      &nextafter_p, &and_p, &or_p, &xor_p, &shift_left_p, &shift_right_logical_p,
      &shift_right_arithmetic_p, &eq_p, &ne_p, &lt_p, &le_p, &gt_p, &ge_p,
      &lt_to_p, &le_to_p,
      &select_n_p, &clamp_p,
      &convert_element_type_p, &bitcast_convert_type_p, &reduce_precision_p, &stop_gradient_p,
      &copy_p, &optimization_barrier_p,
      &iota_p, &empty_p, &empty2_p, &platform_index_p,
      &broadcast_in_dim_p, &reshape_p, &transpose_p, &squeeze_p, &rev_p,
      &concatenate_p, &stack_p, &unstack_p, &split_p, &tile_p, &pad_p,
      &slice_p, &dynamic_slice_p, &dynamic_update_slice_p,
      &gather_p, &scatter_p, &scatter_add_p, &scatter_sub_p, &scatter_mul_p, &scatter_min_p, &scatter_max_p,
      &reduce_sum_p, &reduce_prod_p, &reduce_max_p, &reduce_min_p, &reduce_and_p, &reduce_or_p,
      &argmax_p, &argmin_p, &reduce_xor_p, &cumsum_p, &cumprod_p, &cummax_p, &cummin_p,
      &cumlogsumexp_p, &sort_p, &top_k_p,
      &reduce_window_max_p, &reduce_window_min_p, &reduce_window_sum_p, &select_and_scatter_add_p,
      &select_and_gather_add_p,
      &random_seed_p, &random_wrap_p, &random_unwrap_p, &random_split_p, &random_fold_in_p,
      &random_bits_p, &threefry2x32_p, &threefry_bits_p, &random_clone_p,
      &random_gamma_p,
      &dot_general_p,
      &conv_general_dilated_p,
      &name_p, &device_put_p, &debug_print_p,
      &pvary_p, &psum_invariant_p, &pmax_p, &pmin_p, &all_gather_p, &all_gather_invariant_p,
      &reduce_scatter_p, &ppermute_p, &all_to_all_p, &axis_index_p};
#undef REPRISE_LIST_RECORD
  // clang-format on
  return all;
}

}  // namespace reprise
