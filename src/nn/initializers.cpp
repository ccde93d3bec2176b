// The formulas of jax.nn.initializers. Sizes and variances are computed in double and rounded to
// the dtype of the parameter once; everything after that happens in the dtype, as in JAX.
#include "reprise/initializers.h"

#include "reprise/control.h"
#include "reprise/errors.h"
#include "reprise/ops_math.h"
#include "reprise/ops_shape.h"
#include "reprise/random.h"

#include <cmath>
#include <cstdint>

namespace reprise::nn::initializers {
namespace {

std::int64_t position(const char* op, std::int64_t axis, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis >= rank) {
    fail<TypeError>(op, ": axis ", axis, " is out of range for a shape with ", rank, " dimensions");
  }
  return axis < 0 ? axis + rank : axis;
}

double size_of(const ReduceAxes& axes, const Shape& shape) {
  double size = 1;
  if (!axes.axes()) return size;
  for (const std::int64_t axis : *axes.axes()) {
    const std::int64_t at = position("variance_scaling", axis, shape);
    size *= static_cast<double>(shape[static_cast<std::size_t>(at)]);
  }
  return size;
}

double denominator(const std::string& mode, const FanAxes& axes, const Shape& shape) {
  const bool is_default = axes.in_axis.axes() == ReduceAxes(-2).axes();
  if (is_default && shape.size() <= 1) {
    fail_with_hint<TypeError>(
        "set .in_axis, or give the kernel a shape of inputs and outputs",
        "variance_scaling: the default in_axis -2 needs a kernel with at least "
        "2 dimensions, got ",
        shape.size());
  }
  double all = 1;
  for (const std::int64_t d : shape) all *= static_cast<double>(d);
  const double in_size = size_of(axes.in_axis, shape);
  const double out_size = size_of(axes.out_axis, shape);
  const double receptive_field = all / in_size / out_size / size_of(axes.batch_axis, shape);
  const double fan_in = in_size * receptive_field;
  const double fan_out = out_size * receptive_field;
  if (mode == "fan_in") return fan_in;
  if (mode == "fan_out") return fan_out;
  if (mode == "fan_avg") return (fan_in + fan_out) / 2;
  if (mode == "fan_geo_avg") return std::sqrt(fan_in * fan_out);
  fail<TypeError>(
      "variance_scaling: the mode must be fan_in, fan_out, fan_avg or fan_geo_avg, got '", mode,
      "'");
}

Array scaled_draw(const std::string& distribution, const Array& variance, const Array& key,
                  const Shape& shape, Dtype dtype) {
  if (distribution == "truncated_normal") {
    const double stddev_within_two = 0.87962566103423978;  // of the standard normal cut at -2 and 2
    const Array root = sqrt(variance);
    const Array stddev = root / full({}, stddev_within_two, dtype);
    const Array draw = random::truncated_normal(key, -2, 2, shape, dtype);
    return draw * stddev;
  }
  if (distribution == "normal") {
    const Array draw = random::normal(key, shape, dtype);
    const Array stddev = sqrt(variance);
    return draw * stddev;
  }
  if (distribution == "uniform") {
    const Array draw = random::uniform(key, shape, dtype, -1);
    const Array thrice = 3 * variance;
    const Array half_width = sqrt(thrice);
    return draw * half_width;
  }
  fail<TypeError>(
      "variance_scaling: the distribution must be truncated_normal, normal or uniform, "
      "got '",
      distribution, "'");
}

void check_floating(const char* op, Dtype dtype) {
  if (!is_floating(dtype)) {
    fail<TypeError>(op, ": the dtype must be floating, got ", short_name(dtype));
  }
}

// The orthonormal columns that span those of a (rows >= columns), with a positive diagonal of R in
// a = QR. Subtracting the projection twice leaves them orthogonal to rounding.
Array orthonormal_columns(const Array& a) {
  auto step = [&](Array k, Array q) {
    Array v = a(all, k);
    for (int pass = 0; pass < 2; ++pass) {
      const Array along = dot(v, q);
      const Array projection = dot(q, along);
      v = v - projection;
    }
    const Array squared = square(v);
    const Array length = sqrt(sum(squared));
    const Array unit = v / length;
    return q.at(all, k).set(unit);
  };
  const Array none_yet = reprise::zeros(a.shape(), a.dtype());
  return fori_loop(0, a.shape()[1], step, none_yet);
}

// Evenly distributed over the matrices with orthonormal columns, or rows if there are fewer.
Array random_orthogonal(const Array& key, std::int64_t rows, std::int64_t columns, Dtype dtype) {
  const Shape tall = {std::max(rows, columns), std::min(rows, columns)};
  const Array draw = random::normal(key, tall, dtype == float64 ? float64 : float32);
  const Array q = orthonormal_columns(draw);
  const Array fitted = rows < columns ? transpose(q) : q;
  return fitted.astype(dtype);
}

Array orthogonal_array(double scale, std::int64_t column_axis, const Array& key, const Shape& shape,
                       Dtype dtype) {
  check_floating("orthogonal", dtype);
  if (shape.size() < 2) {
    fail<TypeError>("orthogonal: needs a shape with at least 2 dimensions, got ", shape.size());
  }
  const std::int64_t axis = position("orthogonal", column_axis, shape);
  const std::int64_t columns = shape[static_cast<std::size_t>(axis)];
  std::int64_t rows = 1;
  Shape others = shape;
  others.erase(others.begin() + axis);
  for (const std::int64_t d : others) rows *= d;
  if (rows * columns == 0) return reprise::zeros(shape, dtype);
  const Array q = random_orthogonal(key, rows, columns, dtype);
  Shape columns_last = others;
  columns_last.push_back(columns);
  const Array spread = reshape(q, columns_last);
  const Array placed = moveaxis(spread, -1, axis);
  return full({}, scale, dtype) * placed;
}

}  // namespace

Array Initializer::operator()(Operand key, const Shape& shape, std::optional<Dtype> dtype) const {
  const AtUser at(key.at);
  return function_(key.array, shape, dtype.value_or(dtype_));
}

Array zeros(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  return reprise::zeros(shape, dtype);
}
Array ones(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  return reprise::ones(shape, dtype);
}
Initializer zeros_init() { return zeros; }
Initializer ones_init() { return ones; }

Initializer constant(Array value, Dtype dtype) {
  return {[value](const Array&, const Shape& shape, Dtype d) { return full(shape, value, d); },
          dtype};
}

Initializer normal(double stddev, Dtype dtype) {
  auto init = [stddev](const Array& key, const Shape& shape, Dtype d) {
    check_floating("normal", d);
    const Array draw = random::normal(key, shape, d);
    return draw * full({}, stddev, d);
  };
  return {init, dtype};
}

Initializer uniform(double scale, Dtype dtype) {
  auto init = [scale](const Array& key, const Shape& shape, Dtype d) {
    check_floating("uniform", d);
    const Array draw = random::uniform(key, shape, d);
    return draw * full({}, scale, d);
  };
  return {init, dtype};
}

Initializer truncated_normal(double stddev, Dtype dtype, double lower, double upper) {
  auto init = [=](const Array& key, const Shape& shape, Dtype d) {
    check_floating("truncated_normal", d);
    const Array draw = random::truncated_normal(key, lower, upper, shape, d);
    return draw * full({}, stddev, d);
  };
  return {init, dtype};
}

Initializer variance_scaling(double scale, std::string mode, std::string distribution, FanAxes axes,
                             Dtype dtype) {
  auto init = [=](const Array& key, const Shape& shape, Dtype d) {
    check_floating("variance_scaling", d);
    const double fan = denominator(mode, axes, shape);
    const Array variance = full({}, scale / fan, d);
    return scaled_draw(distribution, variance, key, shape, d);
  };
  return {init, dtype};
}

Initializer lecun_normal(FanAxes axes, Dtype dtype) {
  return variance_scaling(1.0, "fan_in", "truncated_normal", std::move(axes), dtype);
}
Initializer lecun_uniform(FanAxes axes, Dtype dtype) {
  return variance_scaling(1.0, "fan_in", "uniform", std::move(axes), dtype);
}
Initializer he_normal(FanAxes axes, Dtype dtype) {
  return variance_scaling(2.0, "fan_in", "truncated_normal", std::move(axes), dtype);
}
Initializer he_uniform(FanAxes axes, Dtype dtype) {
  return variance_scaling(2.0, "fan_in", "uniform", std::move(axes), dtype);
}
Initializer kaiming_normal(FanAxes axes, Dtype dtype) { return he_normal(std::move(axes), dtype); }
Initializer kaiming_uniform(FanAxes axes, Dtype dtype) {
  return he_uniform(std::move(axes), dtype);
}
Initializer glorot_normal(FanAxes axes, Dtype dtype) {
  return variance_scaling(1.0, "fan_avg", "truncated_normal", std::move(axes), dtype);
}
Initializer glorot_uniform(FanAxes axes, Dtype dtype) {
  return variance_scaling(1.0, "fan_avg", "uniform", std::move(axes), dtype);
}
Initializer xavier_normal(FanAxes axes, Dtype dtype) {
  return glorot_normal(std::move(axes), dtype);
}
Initializer xavier_uniform(FanAxes axes, Dtype dtype) {
  return glorot_uniform(std::move(axes), dtype);
}

Initializer orthogonal(double scale, std::int64_t column_axis, Dtype dtype) {
  auto init = [=](const Array& key, const Shape& shape, Dtype d) {
    return orthogonal_array(scale, column_axis, key, shape, d);
  };
  return {init, dtype};
}

Initializer delta_orthogonal(double scale, std::int64_t column_axis, Dtype dtype) {
  auto init = [=](const Array& key, const Shape& shape, Dtype d) {
    if (shape.size() < 3 || shape.size() > 5) {
      fail<TypeError>("delta_orthogonal: needs a shape with 3, 4 or 5 dimensions, got ",
                      shape.size());
    }
    const Shape matrix(shape.end() - 2, shape.end());
    if (matrix[1] < matrix[0]) {
      fail<TypeError>(
          "delta_orthogonal: the last dimension must be at least as large as the one "
          "before, got ",
          matrix[1], " and ", matrix[0]);
    }
    const Array centre = orthogonal_array(scale, column_axis, key, matrix, d);
    PadWidths around;
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
      const std::int64_t before = (shape[i] - 1) / 2;
      around.emplace_back(before, shape[i] - 1 - before);
    }
    around.resize(shape.size());
    Shape window(shape.size() - 2, 1);
    window.insert(window.end(), matrix.begin(), matrix.end());
    return pad(reshape(centre, window), around);
  };
  return {init, dtype};
}

}  // namespace reprise::nn::initializers
