#include "reprise/errors.h"
#include "reprise/ops_math.h"
#include "reprise/optim.h"

#include <numbers>

namespace reprise::optim {

Schedule constant_schedule(double value) {
  return [value](const Array&) { return Array(value); };
}

Schedule polynomial_schedule(double init_value, double end_value, double power,
                             std::int64_t transition_steps, std::int64_t transition_begin) {
  if (transition_steps <= 0) return constant_schedule(init_value);
  const std::int64_t begin = std::max<std::int64_t>(0, transition_begin);
  return [=](const Array& count) {
    const Array since = reprise::clip(count - begin, Operand(0), Operand(transition_steps));
    const Array progress = since / transition_steps;
    const Array left = 1 - progress;
    const Array curve = power == 1 ? left : reprise::power(left, power);
    const Array above = (init_value - end_value) * curve;
    return above + end_value;
  };
}

Schedule linear_schedule(double init_value, double end_value, std::int64_t transition_steps,
                         std::int64_t transition_begin) {
  return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin);
}

Schedule piecewise_constant_schedule(double init_value,
                                     std::map<std::int64_t, double> boundaries_and_scales) {
  return [=](const Array& count) {
    Array value = init_value;
    for (const auto& [boundary, factor] : boundaries_and_scales) {
      const Array reached = count >= boundary;
      const Array scaled = value * factor;
      value = where(reached, scaled, value);
    }
    return value;
  };
}

Schedule exponential_decay(double init_value, std::int64_t transition_steps, double decay_rate,
                           const ExponentialDecayOptions& o) {
  if (transition_steps <= 0 || decay_rate == 0) return constant_schedule(init_value);
  const std::int64_t begin = std::max<std::int64_t>(0, o.transition_begin);
  return [=](const Array& count) {
    const Array since = count - begin;
    Array exponent = since / transition_steps;
    if (o.staircase) exponent = floor(exponent);
    const Array decayed = init_value * power(decay_rate, exponent);
    const Array value = where(since <= 0, init_value, decayed);
    if (!o.end_value) return value;
    return decay_rate < 1 ? maximum(value, *o.end_value) : minimum(value, *o.end_value);
  };
}

Schedule cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha,
                               double exponent, Location at) {
  const AtUser scope(at);
  if (decay_steps <= 0) {
    fail<TypeError>("cosine_decay_schedule: needs a positive number of decay_steps, got ",
                    decay_steps);
  }
  return [=](const Array& count) {
    const Array until = minimum(count, static_cast<double>(decay_steps));
    const Array angle = std::numbers::pi * until / static_cast<double>(decay_steps);
    const Array wave = 0.5 * (1 + cos(angle));
    const Array curve = exponent == 1 ? wave : power(wave, exponent);
    const Array decayed = (1 - alpha) * curve + alpha;
    return init_value * decayed;
  };
}

Schedule warmup_constant_schedule(double init_value, double peak_value, std::int64_t warmup_steps) {
  return linear_schedule(init_value, peak_value, warmup_steps);
}

Schedule warmup_cosine_decay_schedule(double init_value, double peak_value,
                                      std::int64_t warmup_steps, std::int64_t decay_steps,
                                      double end_value, double exponent, Location at) {
  const AtUser scope(at);
  const double alpha = peak_value == 0 ? 0 : end_value / peak_value;
  return join_schedules(
      {linear_schedule(init_value, peak_value, warmup_steps),
       cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)},
      {warmup_steps});
}

Schedule warmup_exponential_decay_schedule(double init_value, double peak_value,
                                           std::int64_t warmup_steps, std::int64_t transition_steps,
                                           double decay_rate,
                                           const ExponentialDecayOptions& options) {
  return join_schedules({linear_schedule(init_value, peak_value, warmup_steps),
                         exponential_decay(peak_value, transition_steps, decay_rate, options)},
                        {warmup_steps});
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<std::int64_t> boundaries,
                        Location at) {
  const AtUser scope(at);
  if (schedules.size() != boundaries.size() + 1) {
    fail<TypeError>("join_schedules: needs one boundary less than schedules, got ",
                    boundaries.size(), " and ", schedules.size());
  }
  return [=](const Array& count) {
    Array value = schedules[0](count);
    for (std::size_t i = 0; i < boundaries.size(); ++i) {
      const Array later = schedules[i + 1](count - boundaries[i]);
      const Array before = count < boundaries[i];
      value = where(before, value, later);
    }
    return value;
  };
}

}  // namespace reprise::optim
