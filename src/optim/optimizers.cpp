// The optimisers as chains.
#include "reprise/optim.h"

namespace reprise::optim {

GradientTransformation sgd(ScalarOrSchedule learning_rate, const SgdOptions& o) {
  return chain({o.momentum ? trace(*o.momentum, o.nesterov, o.accumulator_dtype) : identity(),
                scale_by_learning_rate(std::move(learning_rate))});
}

GradientTransformation adam(ScalarOrSchedule learning_rate, const AdamOptions& options) {
  return chain({scale_by_adam(options), scale_by_learning_rate(std::move(learning_rate))});
}

GradientTransformation adamw(ScalarOrSchedule learning_rate, const AdamWOptions& o) {
  const AdamOptions adam_options{.b1 = o.b1,
                                 .b2 = o.b2,
                                 .eps = o.eps,
                                 .eps_root = o.eps_root,
                                 .mu_dtype = o.mu_dtype,
                                 .nesterov = o.nesterov};
  return chain({scale_by_adam(adam_options), add_decayed_weights(o.weight_decay, o.mask),
                scale_by_learning_rate(std::move(learning_rate))});
}

GradientTransformation lion(ScalarOrSchedule learning_rate, const LionOptions& o) {
  return chain({scale_by_lion(o.b1, o.b2, o.mu_dtype), add_decayed_weights(o.weight_decay, o.mask),
                scale_by_learning_rate(std::move(learning_rate))});
}

GradientTransformation rmsprop(ScalarOrSchedule learning_rate, const RmsPropOptions& o) {
  const RmsOptions rms{.decay = o.decay,
                       .eps = o.eps,
                       .initial_scale = o.initial_scale,
                       .eps_in_sqrt = o.eps_in_sqrt,
                       .bias_correction = o.bias_correction};
  return chain({o.centered ? scale_by_stddev(rms) : scale_by_rms(rms),
                scale_by_learning_rate(std::move(learning_rate)),
                o.momentum ? trace(*o.momentum, o.nesterov) : identity()});
}

GradientTransformation adagrad(ScalarOrSchedule learning_rate, double initial_accumulator_value,
                               double eps) {
  return chain({scale_by_rss(initial_accumulator_value, eps),
                scale_by_learning_rate(std::move(learning_rate))});
}

GradientTransformation adafactor(std::optional<ScalarOrSchedule> learning_rate,
                                 const AdafactorOptions& o) {
  std::vector<GradientTransformation> steps = {
      scale_by_factored_rms({.factored = o.factored,
                             .decay_rate = o.decay_rate,
                             .step_offset = o.decay_offset,
                             .min_dim_size_to_factor = o.min_dim_size_to_factor,
                             .epsilon = o.eps})};
  if (o.clipping_threshold) steps.push_back(clip_by_block_rms(*o.clipping_threshold));
  if (learning_rate) steps.push_back(scale_by_learning_rate(*learning_rate, /*flip_sign=*/false));
  if (o.multiply_by_parameter_scale) steps.push_back(scale_by_param_block_rms());
  if (o.momentum) steps.push_back(ema(*o.momentum, /*debias=*/false, o.dtype_momentum));
  if (o.weight_decay_rate)
    steps.push_back(add_decayed_weights(*o.weight_decay_rate, o.weight_decay_mask));
  steps.push_back(scale(-1));
  return chain(std::move(steps));
}

}  // namespace reprise::optim
