// Adafactor's second moments: of a matrix only the means of its rows and columns are kept.
#include "optim/moments.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"
#include "reprise/ops_shape.h"

#include <algorithm>
#include <numeric>

namespace reprise::optim {
namespace {

using Result = std::pair<Arrays, Dict>;

// The two largest dimensions, second largest first, if a leaf is worth factoring.
std::optional<std::pair<std::int64_t, std::int64_t>> factored_dims(const Shape& shape,
                                                                   const FactoredRmsOptions& o) {
  if (!o.factored || shape.size() < 2) return std::nullopt;
  std::vector<std::size_t> by_size(shape.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return shape[a] < shape[b]; });
  const std::size_t second = by_size[by_size.size() - 2];
  if (shape[second] < o.min_dim_size_to_factor) return std::nullopt;
  return std::pair{static_cast<std::int64_t>(second), static_cast<std::int64_t>(by_size.back())};
}

Shape without(Shape shape, std::int64_t axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}

struct Moments {
  Array row, col, full;  // those not in use are zeros of size 1
};

Moments initial(const Array& param, const FactoredRmsOptions& o) {
  const Array unused = zeros({1}, param.dtype());
  if (const auto dims = factored_dims(param.shape(), o)) {
    return {zeros(without(param.shape(), dims->second), param.dtype()),
            zeros(without(param.shape(), dims->first), param.dtype()), unused};
  }
  return {unused, unused, zeros_like(param)};
}

Array averaged(const Array& old, const Array& now, const Array& decay, Dtype dtype) {
  const Array kept = decay * old;
  const Array weight = 1 - decay;
  const Array added = weight * now;
  return (kept + added).astype(dtype);
}

Array scaled(const Array& grad, Moments& v, const Array& decay, Dtype dtype,
             const FactoredRmsOptions& o) {
  const Array squares = grad * grad + o.epsilon;
  const auto dims = factored_dims(grad.shape(), o);
  if (!dims) {
    v.full = averaged(v.full, squares, decay, dtype);
    return grad * power(v.full, -0.5);
  }
  const auto [d1, d0] = *dims;
  v.row = averaged(v.row, mean(squares, d0), decay, dtype);
  v.col = averaged(v.col, mean(squares, d1), decay, dtype);
  const Array row_mean = mean(v.row, d1 > d0 ? d1 - 1 : d1, /*keepdims=*/true);
  const Array relative = v.row / row_mean;
  const Array row_factor = power(relative, -0.5);
  const Array col_factor = power(v.col, -0.5);
  const Array by_row = grad * expand_dims(row_factor, d0);
  return by_row * expand_dims(col_factor, d1);
}

void store(Dict& state, const NamedLeaves& leaves, const std::vector<Moments>& all) {
  Arrays row, col, full;
  for (const Moments& m : all) {
    row.push_back(m.row);
    col.push_back(m.col);
    full.push_back(m.full);
  }
  store_moments(state, "v_row", leaves, row);
  store_moments(state, "v_col", leaves, col);
  store_moments(state, "v", leaves, full);
}

void check_shape(const KeyPath& path, const Array& got, const Array& wanted) {
  if (got.shape() == wanted.shape()) return;
  fail<TypeError>("adafactor: the state does not fit the parameters, got ", got.type(), " for ",
                  wanted.type(), " in '", path_text(path), "'");
}

}  // namespace

GradientTransformation scale_by_factored_rms(const FactoredRmsOptions& o) {
  auto init = [o](const NamedLeaves& params) {
    Dict state;
    state["count"] = zero_count();
    std::vector<Moments> all;
    for (const Array& p : params.values) all.push_back(initial(p, o));
    store(state, params, all);
    return state;
  };
  auto update = [o](const NamedLeaves& grads, const Dict& state,
                    const std::optional<Arrays>& params) {
    const Arrays& p = needed("scale_by_factored_rms", params);
    const Array count = load_count(state);
    const Arrays row = load_moments(state, "v_row", grads, /*any_shape=*/true);
    const Arrays col = load_moments(state, "v_col", grads, /*any_shape=*/true);
    const Arrays full = load_moments(state, "v", grads, /*any_shape=*/true);
    const Array step = (count - o.step_offset + 1).astype(float32);
    const Array decay = 1.0 - power(step, -o.decay_rate);
    Arrays out;
    std::vector<Moments> all;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const Moments wanted = initial(p[i], o);
      check_shape(grads.paths[i], row[i], wanted.row);
      check_shape(grads.paths[i], col[i], wanted.col);
      check_shape(grads.paths[i], full[i], wanted.full);
      all.push_back({row[i], col[i], full[i]});
      out.push_back(scaled(grads.values[i], all.back(), decay, p[i].dtype(), o));
    }
    Dict next;
    next["count"] = next_count(count);
    store(next, grads, all);
    return Result{out, next};
  };
  return {init, update};
}

GradientTransformation scale_by_param_block_rms(double min_scale) {
  auto init = [](const NamedLeaves&) { return Dict(); };
  auto update = [min_scale](const NamedLeaves& updates, const Dict&,
                            const std::optional<Arrays>& params) {
    const Arrays& p = needed("scale_by_param_block_rms", params);
    Arrays out;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const Array rms = sqrt(mean(p[i] * p[i]));
      const Array size = where(rms <= min_scale, min_scale, rms);
      out.push_back(updates.values[i] * size);
    }
    return Result{out, {}};
  };
  return {init, update};
}

}  // namespace reprise::optim
