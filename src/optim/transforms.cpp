// The single steps that optimisers are chained from; formulas and their order are optax's.
#include "optim/moments.h"
#include "reprise/lax.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

namespace reprise::optim {
namespace {

using Result = std::pair<Arrays, Dict>;
using Params = std::optional<Arrays>;

Dict no_state(const NamedLeaves&) { return {}; }

// A transformation without state that changes each leaf on its own.
GradientTransformation each(const std::function<Array(const Array&)>& f) {
  auto update = [f](const NamedLeaves& updates, const Dict&, const Params&) {
    Arrays out;
    for (const Array& u : updates.values) out.push_back(f(u));
    return Result{out, {}};
  };
  return {no_state, update};
}

}  // namespace

GradientTransformation identity() {
  return each([](const Array& u) { return u; });
}

GradientTransformation scale(Array step_size) {
  return each([step_size](const Array& u) { return step_size * u; });
}

GradientTransformation scale_by_schedule(Schedule step_size) {
  auto init = [](const NamedLeaves&) {
    Dict state;
    state["count"] = zero_count();
    return state;
  };
  auto update = [step_size](const NamedLeaves& updates, const Dict& state, const Params&) {
    const Array count = load_count(state);
    const Array factor = step_size(count);
    Arrays out;
    for (const Array& u : updates.values) out.push_back(factor.astype(u.dtype()) * u);
    Dict next;
    next["count"] = next_count(count);
    return Result{out, next};
  };
  return {init, update};
}

GradientTransformation scale_by_learning_rate(ScalarOrSchedule learning_rate, bool flip_sign) {
  const int sign = flip_sign ? -1 : 1;
  if (!learning_rate.is_schedule()) return scale(sign * learning_rate.at(0));
  return scale_by_schedule([=](const Array& count) { return sign * learning_rate.at(count); });
}

// --------------------------------------------------------------------------------- clipping, decay
GradientTransformation clip(double max_delta) {
  return each(
      [=](const Array& u) { return reprise::clip(u, Operand(-max_delta), Operand(max_delta)); });
}

GradientTransformation clip_by_global_norm(double max_norm) {
  auto update = [max_norm](const NamedLeaves& updates, const Dict&, const Params&) {
    const Array norm = global_norm(updates.values);
    const Array fits = norm < max_norm;
    Arrays out;
    for (const Array& u : updates.values) {
      const Array unit = u / norm.astype(u.dtype());
      const Array cut = unit * max_norm;
      out.push_back(where(fits, u, cut));
    }
    return Result{out, {}};
  };
  return {no_state, update};
}

GradientTransformation clip_by_block_rms(double threshold) {
  return each([threshold](const Array& u) {
    const Array squares = u * u;
    const Array rms = sqrt(mean(squares));
    const Array ratio = rms / threshold;
    return u / maximum(1.0, ratio);
  });
}

GradientTransformation add_decayed_weights(ScalarOrSchedule weight_decay, Mask mask) {
  const bool counts = weight_decay.is_schedule();
  auto init = [counts](const NamedLeaves&) {
    Dict state;
    if (counts) state["count"] = zero_count();
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params& params) {
    const Arrays& p = needed("add_decayed_weights", params);
    Dict next;
    const Array count = counts ? load_count(state) : Array(0);
    if (counts) next["count"] = next_count(count);
    const Array decay = weight_decay.at(count);
    Arrays out;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const Array shrink = decay * p[i];
      out.push_back(updates.values[i] + shrink);
    }
    return Result{out, next};
  };
  const GradientTransformation all{init, update};
  return mask ? masked(all, mask) : all;
}

// --------------------------------------------------------------------------------------- averages
GradientTransformation trace(double decay, bool nesterov, OptionalDtype accumulator_dtype) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    store_moments(state, "trace", params, filled_like(params, 0.0, accumulator_dtype));
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params&) {
    const Arrays traces = load_moments(state, "trace", updates);
    auto follow = [&](const Arrays& from) {
      Arrays out;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const Array kept = decay * from[i];
        out.push_back(updates.values[i] + kept);
      }
      return out;
    };
    const Arrays moved = follow(traces);
    const Arrays out = nesterov ? follow(moved) : moved;
    Dict next;
    store_moments(next, "trace", updates, cast_moments(moved, accumulator_dtype));
    return Result{out, next};
  };
  return {init, update};
}

GradientTransformation ema(double decay, bool debias, OptionalDtype accumulator_dtype) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    state["count"] = zero_count();
    store_moments(state, "ema", params, filled_like(params, 0.0, accumulator_dtype));
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params&) {
    const Arrays moved =
        update_moments(updates.values, load_moments(state, "ema", updates), decay, 1);
    const Array count = next_count(load_count(state));
    const Arrays out = debias ? correct_bias(moved, decay, count) : moved;
    Dict next;
    next["count"] = count;
    store_moments(next, "ema", updates, cast_moments(moved, accumulator_dtype));
    return Result{out, next};
  };
  return {init, update};
}

GradientTransformation scale_by_adam(const AdamOptions& o) {
  auto init = [o](const NamedLeaves& params) {
    Dict state;
    state["count"] = zero_count();
    store_moments(state, "mu", params, filled_like(params, 0.0, o.mu_dtype));
    store_moments(state, "nu", params, filled_like(params, 0.0));
    return state;
  };
  auto update = [o](const NamedLeaves& updates, const Dict& state, const Params&) {
    const Arrays old_nu = load_moments(state, "nu", updates);
    const Arrays mu = update_moments(updates.values, load_moments(state, "mu", updates), o.b1, 1);
    Arrays nu = update_moments(updates.values, old_nu, o.b2, 2);
    const Array count = next_count(load_count(state));
    Arrays mu_hat;
    if (o.nesterov) {
      const Arrays ahead = correct_bias(mu, o.b1, next_count(count));
      const Arrays now = correct_bias(updates.values, o.b1, count);
      for (std::size_t i = 0; i < mu.size(); ++i) {
        const Array kept = o.b1 * ahead[i];
        const Array added = (1 - o.b1) * now[i];
        mu_hat.push_back(kept + added);
      }
    } else {
      mu_hat = correct_bias(mu, o.b1, count);
    }
    const Arrays nu_hat = correct_bias(nu, o.b2, count);
    Arrays out;
    for (std::size_t i = 0; i < mu.size(); ++i) {
      const Array root = sqrt(nu_hat[i] + o.eps_root);
      const Array divisor = root + o.eps;
      out.push_back(mu_hat[i] / divisor);
      nu[i] = nu[i].astype(old_nu[i].dtype());
    }
    Dict next;
    next["count"] = count;
    store_moments(next, "mu", updates, cast_moments(mu, o.mu_dtype));
    store_moments(next, "nu", updates, nu);
    return Result{out, next};
  };
  return {init, update};
}

GradientTransformation scale_by_lion(double b1, double b2, OptionalDtype mu_dtype) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    state["count"] = zero_count();
    store_moments(state, "mu", params, filled_like(params, 0.0, mu_dtype));
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params&) {
    const Arrays mu = load_moments(state, "mu", updates);
    Arrays out;
    for (std::size_t i = 0; i < mu.size(); ++i) {
      const Array added = (1 - b1) * updates.values[i];
      const Array kept = b1 * mu[i];
      out.push_back(sign(added + kept));
    }
    Dict next;
    next["count"] = next_count(load_count(state));
    store_moments(next, "mu", updates,
                  cast_moments(update_moments(updates.values, mu, b2, 1), mu_dtype));
    return Result{out, next};
  };
  return {init, update};
}

// ------------------------------------------------------------------------------- root mean squares
namespace {

// 1 / sqrt(variance + eps), or 1 / (sqrt(variance) + eps)
Array inverse_root(const Array& variance, const RmsOptions& o) {
  if (o.eps_in_sqrt) return lax::rsqrt(variance + o.eps);
  const Array root = sqrt(variance);
  return 1 / (root + o.eps);
}

GradientTransformation scale_by_moments(const RmsOptions& o, bool centered) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    if (o.bias_correction) state["count"] = zero_count();
    if (centered) store_moments(state, "mu", params, filled_like(params, 0.0));
    store_moments(state, "nu", params, filled_like(params, o.initial_scale));
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params&) {
    Dict next;
    Arrays mu, mu_hat;
    if (centered)
      mu = update_moments(updates.values, load_moments(state, "mu", updates), o.decay, 1);
    const Arrays nu =
        update_moments(updates.values, load_moments(state, "nu", updates), o.decay, 2);
    mu_hat = mu;
    Arrays nu_hat = nu;
    if (o.bias_correction) {
      const Array count = next_count(load_count(state));
      mu_hat = correct_bias(mu, o.decay, count);
      nu_hat = correct_bias(nu, o.decay, count);
      next["count"] = count;
    }
    Arrays out;
    for (std::size_t i = 0; i < nu.size(); ++i) {
      const Array variance = centered ? nu_hat[i] - mu_hat[i] * mu_hat[i] : nu_hat[i];
      out.push_back(inverse_root(variance, o) * updates.values[i]);
    }
    if (centered) store_moments(next, "mu", updates, mu);
    store_moments(next, "nu", updates, nu);
    return Result{out, next};
  };
  return {init, update};
}

}  // namespace

GradientTransformation scale_by_rms(const RmsOptions& options) {
  return scale_by_moments(options, false);
}
GradientTransformation scale_by_stddev(const RmsOptions& options) {
  return scale_by_moments(options, true);
}

GradientTransformation scale_by_rss(double initial_accumulator_value, double eps) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    store_moments(state, "sum_of_squares", params, filled_like(params, initial_accumulator_value));
    return state;
  };
  auto update = [=](const NamedLeaves& updates, const Dict& state, const Params&) {
    Arrays sums = load_moments(state, "sum_of_squares", updates);
    Arrays out;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Array& g = updates.values[i];
      const Array squares = g * g;
      sums[i] = squares + sums[i];
      const Array inverse = lax::rsqrt(sums[i] + eps);
      const Array factor = where(sums[i] > 0, inverse, 0.0);
      out.push_back(factor * g);
    }
    Dict next;
    store_moments(next, "sum_of_squares", updates, sums);
    return Result{out, next};
  };
  return {init, update};
}

}  // namespace reprise::optim
