// The rarer activation functions of jax.nn: the same equations, inner calls and rules.
#include "control/call.h"
#include "control/custom_rules.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "reprise/nn_functions.h"
#include "reprise/ops_reduce.h"
#include "reprise/ops_shape.h"

#include <cmath>
#include <numbers>

namespace reprise::nn {

Array identity(Operand x) {
  const AtUser at(x.at);
  return jit_call1("identity", [](const Arrays& a) { return Arrays{a[0]}; }, {x.array});
}

Array celu(Operand x, Operand alpha) {
  const AtUser at(x.at);
  auto body = [&](const Arrays& a) {
    const Array positive = maximum(a[0], 0.0);
    const Array below = minimum(a[0], 0.0);
    const Array scaled = divide(below, alpha);
    const Array grown = expm1(scaled);
    const Array negative_part = multiply(alpha, grown);
    return Arrays{add(positive, negative_part)};
  };
  return jit_call1("celu", body, {x.array});
}

Array selu(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array grown = elu(a[0], 1.6732632423543772848170429916717);
    return Arrays{multiply(1.0507009873554804934193349852946, grown)};
  };
  return jit_call1("selu", body, {x.array});
}

Array hard_tanh(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array above = greater(a[0], 1);
    const Array below = less(a[0], -1);
    const Array cut_below = where(below, -1, a[0]);
    return Arrays{where(above, 1, cut_below)};
  };
  return jit_call1("hard_tanh", body, {x.array});
}

Array hard_sigmoid(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array shifted = add(a[0], 3.0);
    const Array cut = relu6(shifted);
    return Arrays{divide(cut, 6.0)};
  };
  return jit_call1("hard_sigmoid", body, {x.array});
}

Array hard_silu(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array gate = hard_sigmoid(a[0]);
    return Arrays{multiply(a[0], gate)};
  };
  return jit_call1("hard_silu", body, {x.array});
}
Array hard_swish(Operand x) { return hard_silu(std::move(x)); }

Array glu(Operand x, std::int64_t axis) {
  const AtUser at(x.at);
  const std::int64_t along = canonical_axis("glu", axis, x.array.ndim());
  const std::int64_t size = x.array.shape()[static_cast<std::size_t>(along)];
  if (size % 2 != 0) {
    fail<TypeError>("glu: the axis must have an even size, got ", size, " in ", x.array.type());
  }
  auto body = [along](const Arrays& a) {
    const Arrays halves = split(a[0], 2, along);
    const Array gate = sigmoid(halves[1]);
    return Arrays{multiply(halves[0], gate)};
  };
  return jit_call1("glu", body, {x.array});
}

Array mish(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array soft = softplus(a[0]);
    const Array gate = reprise::tanh(soft);
    return Arrays{multiply(a[0], gate)};
  };
  return jit_call1("mish", body, {x.array});
}

Array squareplus(Operand x, Operand b) {
  const AtUser at(x.at);
  auto body = [&](const Arrays& a) {
    const Array squared = square(a[0]);
    const Array shifted = add(squared, b);
    const Array root = sqrt(shifted);
    const Array y = add(a[0], root);
    return Arrays{divide(y, 2)};
  };
  return jit_call1("squareplus", body, {x.array});
}

Array soft_sign(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array size = abs(a[0]);
    const Array shifted = add(size, 1);
    return Arrays{divide(a[0], shifted)};
  };
  return jit_call1("soft_sign", body, {x.array});
}

Array sparse_plus(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array low = less_equal(a[0], -1.0);
    const Array high = greater_equal(a[0], 1.0);
    const Array shifted = add(a[0], 1.0);
    const Array squared = power(shifted, 2);
    const Array between = divide(squared, 4);
    const Array above = where(high, a[0], between);
    return Arrays{where(low, 0.0, above)};
  };
  return jit_call1("sparse_plus", body, {x.array});
}

Array sparse_sigmoid(Operand x) {
  const AtUser at(x.at);
  auto body = [](const Arrays& a) {
    const Array shifted = add(a[0], 1.0);
    const Array cut = clip(shifted, Operand(0.0), Operand(2.0));
    return Arrays{multiply(0.5, cut)};
  };
  return jit_call1("sparse_sigmoid", body, {x.array});
}

namespace {

Array log1mexp_value(const Array& x) {
  const Array near_zero = less(x, std::numbers::ln2);
  const Array minus = negative(x);
  const Array grown = expm1(minus);
  const Array by_expm1 = log(negative(grown));
  const Array again = negative(x);
  const Array power_of_e = exp(again);
  const Array by_log1p = log1p(negative(power_of_e));
  return where(near_zero, by_expm1, by_log1p);
}

}  // namespace

Array log1mexp(Operand x) {
  const AtUser at(x.at);
  auto value = [](const Arrays& a) { return Arrays{log1mexp_value(a[0])}; };
  auto body = [value](const Arrays& a) { return Arrays{jit_call1("log1mexp", value, a)}; };
  auto rule = [](const Arrays& a, const Arrays& t) {
    const Array y = log1mexp(a[0]);
    const Array grown = expm1(a[0]);
    const Array dy = divide(t[0], grown);
    return std::pair{Arrays{y}, Arrays{dy}};
  };
  const Array v = promote_dtype(x.array, Works::inexact);
  return custom_jvp_call("log1mexp", body, std::make_shared<const JvpRule>("jvp", rule), {v})[0];
}

Array logmeanexp(Operand x, ReduceAxes axis, bool keepdims) {
  const AtUser at(x.at);
  auto body = [&](const Arrays& a) {
    const Array total = logsumexp(a[0], axis, keepdims);
    const std::int64_t count = total.size() == 0 ? 0 : a[0].size() / total.size();
    return Arrays{subtract(total, std::log(static_cast<double>(count)))};
  };
  return jit_call1("logmeanexp", body, {x.array});
}

}  // namespace reprise::nn
