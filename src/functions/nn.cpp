// Activation functions as jax.nn defines them: the same equations, inner calls and rules.
#include "control/call.h"
#include "control/custom_rules.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "reprise/nn_functions.h"
#include "reprise/ops_math.h"

#include <cmath>
#include <numbers>

namespace reprise::nn {
namespace {

// A function that clips: the derivative is 1 inside and 0 outside, also on the border.
Array clipped(const char* name, const Array& x, const FlatFunction& value,
              Array (*inside)(const Array& x)) {
  auto body = [=](const Arrays& a) { return Arrays{jit_call1(name, value, a)}; };
  auto rule = [=](const Arrays& a, const Arrays& t) {
    const Array y = clipped(name, a[0], value, inside);
    const Array pass = inside(a[0]);
    const Array zero = lax::full_like(t[0].type(), 0);
    const Array dy = lax::select_n(pass, {zero, t[0]});
    return std::pair{Arrays{y}, Arrays{dy}};
  };
  return custom_jvp_call(name, body, std::make_shared<const JvpRule>("jvp", rule), {x})[0];
}

Array shifted_by_max(const Array& x, std::int64_t axis) {
  const Array top = lax::reduce_max(x, {axis});
  const Array safe = lax::max(lax::const_like(top, -std::numeric_limits<double>::infinity()), top);
  const Array kept = lax::expand_dims(safe, {axis});
  const Array stopped = lax::stop_gradient(kept);
  return lax::sub(x, stopped);
}

Array sum_kept(const Array& x, std::int64_t axis) {
  const Array total = lax::reduce_sum(x, {axis});
  return lax::expand_dims(total, {axis});
}

Array as_float(const Operand& x) { return promote_dtype(x.array, Works::inexact); }

void check_axis_not_empty(const char* op, const Array& x, std::int64_t axis) {
  if (x.shape()[static_cast<std::size_t>(axis)] == 0) {
    fail<TypeError>(op, ": the axis must not be empty, got ", x.type());
  }
}

}  // namespace

Array relu(Operand x) {
  const AtUser at(x.at);
  return clipped(
      "relu", promote_dtype(x.array, Works::numeric),
      [](const Arrays& a) { return Arrays{maximum(a[0], 0.0)}; },
      [](const Array& v) { return greater(v, 0.0); });
}

Array relu6(Operand x) {
  const AtUser at(x.at);
  return clipped(
      "relu6", promote_dtype(x.array, Works::numeric),
      [](const Arrays& a) {
        const Array positive = maximum(a[0], 0.0);
        return Arrays{minimum(positive, 6.0)};
      },
      [](const Array& v) {
        const Array low = greater(v, 0.0);
        const Array high = less(v, 6.0);
        return lax::bitwise_and(low, high);
      });
}

Array sigmoid(Operand x) {
  const AtUser at(x.at);
  return lax::logistic(as_float(x));
}

Array softplus(Operand x) {
  const AtUser at(x.at);
  return jit_call1("softplus", [](const Arrays& a) { return Arrays{logaddexp(a[0], 0.0)}; },
                   {as_float(x)});
}

Array log_sigmoid(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array minus = negative(a[0]);
    const Array soft = softplus(minus);
    return Arrays{negative(soft)};
  };
  return jit_call1("log_sigmoid", body, {as_float(x)});
}

Array silu(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array s = lax::logistic(a[0]);
    return Arrays{multiply(a[0], s)};
  };
  return jit_call1("silu", body, {as_float(x)});
}
Array swish(Operand x) { return silu(std::move(x)); }

Array elu(Operand x, Operand alpha) {
  const AtUser at(x.at);
  auto body = [&](const Arrays& a) {
    const Array positive = greater(a[0], 0.0);
    const Array positive_again = greater(a[0], 0.0);
    const Array safe = where(positive_again, 0.0, a[0]);
    const Array grown = expm1(safe);
    const Array scaled = multiply(alpha, grown);
    return Arrays{where(positive, a[0], scaled)};
  };
  return jit_call1("elu", body, {as_float(x)});
}

Array leaky_relu(Operand x, Operand negative_slope) {
  const AtUser at(x.at);
  auto body = [&](const Arrays& a) {
    const Array positive = greater_equal(a[0], 0.0);
    const Array scaled = multiply(negative_slope, a[0]);
    return Arrays{where(positive, a[0], scaled)};
  };
  return jit_call1("leaky_relu", body, {as_float(x)});
}

Array gelu(Operand x, bool approximate) {
  const AtUser at(x.at);
  const Array v = as_float(x);
  if (!approximate) {
    const Array half = multiply(0.5, v);
    const Array minus = negative(v);
    const Array scaled = lax::mul(minus, lax::const_like(v, std::numbers::sqrt2 / 2));
    const Array tail = lax::erfc(scaled);
    const Array product = multiply(half, tail);
    return lax::copy(product);
  }
  const double sqrt_2_over_pi = std::sqrt(2 * std::numbers::inv_pi);
  const Array cube = lax::integer_pow(v, 3);
  const Array small = multiply(0.044715, cube);
  const Array sum = add(v, small);
  const Array inner = lax::mul(lax::const_like(v, sqrt_2_over_pi), sum);
  const Array t = lax::tanh(inner);
  const Array one_plus = add(1.0, t);
  const Array cdf = multiply(0.5, one_plus);
  return multiply(v, cdf);
}

Array softmax(Operand x, std::int64_t axis) {
  const AtUser at(x.at);
  const Array v = as_float(x);
  const std::int64_t a = canonical_axis("softmax", axis, v.ndim());
  check_axis_not_empty("softmax", v, a);
  const Array shifted = shifted_by_max(v, a);
  const Array grown = lax::exp(shifted);
  const Array total = sum_kept(grown, a);
  return lax::div(grown, total);
}

Array log_softmax(Operand x, std::int64_t axis) {
  const AtUser at(x.at);
  const Array v = as_float(x);
  const std::int64_t a = canonical_axis("log_softmax", axis, v.ndim());
  check_axis_not_empty("log_softmax", v, a);
  auto body = [a](const Arrays& args) {
    const Array shifted = shifted_by_max(args[0], a);
    const Array grown = lax::exp(shifted);
    const Array total = sum_kept(grown, a);
    const Array log_total = lax::log(total);
    return Arrays{lax::sub(shifted, log_total)};
  };
  return jit_call1("log_softmax", body, {v});
}

Array one_hot(Operand x, std::int64_t num_classes, Dtype dtype, std::int64_t axis) {
  const AtUser at(x.at);
  if (num_classes < 0)
    fail<TypeError>("one_hot: the number of classes must not be negative, got ", num_classes);
  const std::int64_t a = canonical_axis("one_hot", axis, x.array.ndim() + 1);
  auto body = [=](const Arrays& args) {
    const Array spread = lax::expand_dims(args[0], {a});
    Shape shape(static_cast<std::size_t>(args[0].ndim()) + 1, 1);
    shape[static_cast<std::size_t>(a)] = num_classes;
    const Dtype own = args[0].dtype();
    const bool fits = !is_integer(own) || num_classes - 1 <= largest_integer(own);
    const Array classes = lax::iota(fits ? own : index_dtype(num_classes), shape, a);
    const Array label = fits ? spread : lax::convert(spread, classes.dtype());
    const Array hit = lax::eq(label, classes);
    return Arrays{lax::convert(hit, dtype)};
  };
  return jit_call1("_one_hot", body, {x.array});
}

Array standardize(Operand x, std::int64_t axis, double epsilon) {
  const AtUser at(x.at);
  const Array v = as_float(x);
  const std::int64_t a = canonical_axis("standardize", axis, v.ndim());
  auto body = [=](const Arrays& args) {
    const Array& u = args[0];
    const auto size = static_cast<double>(u.shape()[static_cast<std::size_t>(a)]);
    const Array sum = sum_kept(u, a);
    const Array mean = lax::div(sum, lax::const_like(sum, size));
    const Array squares = lax::square(u);
    const Array square_sum = sum_kept(squares, a);
    const Array square_mean = lax::div(square_sum, lax::const_like(square_sum, size));
    const Array mean_square = lax::square(mean);
    const Array raw = lax::sub(square_mean, mean_square);
    const Array variance = clip(raw, Operand(0));  // rounding may leave it just below 0
    const Array centered = subtract(u, mean);
    const Array safe = add(variance, epsilon);
    const Array scale = lax::rsqrt(safe);
    return Arrays{multiply(centered, scale)};
  };
  return jit_call1("standardize", body, {v});
}

}  // namespace reprise::nn
