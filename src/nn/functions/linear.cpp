#include "nn/functions/axes.h"
#include "reprise/lax.h"
#include "reprise/nn_layers.h"
#include "reprise/ops_shape.h"
#include "reprise/random.h"

namespace reprise::nn {

// ------------------------------------------------------------------------------------------ dtypes
Dtype canonicalize_dtype(const Arrays& xs, OptionalDtype dtype, bool inexact) {
  std::optional<Promoted> promoted;
  for (const Array& x : xs) {
    if (!x.defined() || dtype) continue;
    promoted = promoted
                   ? promote_types(promoted->dtype, promoted->weak_type, x.dtype(), x.weak_type())
                   : Promoted{x.dtype(), x.weak_type()};
  }
  Dtype out = dtype ? *dtype : promoted ? promoted->dtype : float32;
  if (!inexact || is_floating(out)) return out;
  if (dtype) fail<TypeError>("promote_dtype: the dtype must be floating, got ", short_name(out));
  return promote_types(float32, false, out, false).dtype;
}

Arrays promote_dtype(Arrays xs, OptionalDtype dtype, bool inexact) {
  const Dtype common = canonicalize_dtype(xs, dtype, inexact);
  for (Array& x : xs) {
    if (x.defined()) x = x.astype(common);
  }
  return xs;
}

// ------------------------------------------------------------------------------------------- dense
namespace {

Array or_undefined(const OptionalArray& x) { return x.value_or(Array()); }

void check_contracted(const char* op, const Array& x, const Shape& x_axes, const Array& kernel,
                      std::size_t first) {
  for (std::size_t i = 0; i < x_axes.size(); ++i) {
    const bool has = first + i < kernel.shape().size();
    const std::int64_t size = x.shape()[static_cast<std::size_t>(x_axes[i])];
    if (has && kernel.shape()[first + i] == size) continue;
    fail<TypeError>(op, ": the kernel does not fit the input, got ", kernel.type(), " for axis ",
                    x_axes[i], " of ", x.type());
  }
}

}  // namespace

Array dense(Operand x, const Array& kernel, const OptionalArray& bias, OptionalDtype dtype) {
  const AtUser at(x.at);
  if (x.array.ndim() == 0)
    fail<TypeError>("dense: the input needs at least one axis, got ", x.array.type());
  check_contracted("dense", x.array, {x.array.ndim() - 1}, kernel, 0);
  const Arrays in = promote_dtype({x.array, kernel, or_undefined(bias)}, dtype);
  const Array y = lax::dot_general(in[0], in[1], {{in[0].ndim() - 1}, {0}, {}, {}});
  if (!bias) return y;
  Shape spread(static_cast<std::size_t>(y.ndim()) - 1, 1);
  spread.push_back(-1);
  const Array row = reshape(in[2], spread);
  return y + row;
}

Array dense_general(Operand x, const Array& kernel, const OptionalArray& bias,
                    const DenseGeneralOptions& options) {
  const AtUser at(x.at);
  const std::int64_t rank = x.array.ndim();
  const Shape axis = canonical_axes("dense_general", options.axis, rank);
  const Shape batch = canonical_axes("dense_general", options.batch_dims, rank);
  Shape kernel_batch, kernel_contracted, spread;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!contains(batch, static_cast<std::int64_t>(i))) {
      fail<TypeError>("dense_general: batch_dims must be the leading axes 0, 1, ..., got [",
                      join(batch, ", "), "]");
    }
    kernel_batch.push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < axis.size(); ++i) {
    kernel_contracted.push_back(static_cast<std::int64_t>(batch.size() + i));
  }
  check_contracted("dense_general", x.array, batch, kernel, 0);
  check_contracted("dense_general", x.array, axis, kernel, batch.size());
  const Arrays in = promote_dtype({x.array, kernel, or_undefined(bias)}, options.dtype);
  const Array y = lax::dot_general(in[0], in[1], {axis, kernel_contracted, batch, kernel_batch});
  if (!bias) return y;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (contains(axis, i)) continue;
    spread.push_back(contains(batch, i) ? x.array.shape()[static_cast<std::size_t>(i)] : 1);
  }
  const Shape& sizes = kernel.shape();
  const auto features = static_cast<std::ptrdiff_t>(batch.size() + axis.size());
  spread.insert(spread.end(), sizes.begin() + features, sizes.end());
  const Array spread_bias = reshape(in[2], spread);
  return y + spread_bias;
}

Initializer flattened_init(Initializer init, std::int64_t features) {
  return [init, features](const Array& key, const Shape& shape, Dtype dtype) {
    const std::size_t outputs = std::min(static_cast<std::size_t>(features), shape.size());
    const std::size_t inputs = shape.size() - outputs;
    const std::int64_t out_size = product(shape, inputs, shape.size());
    const Shape flat = inputs == 0 ? Shape{out_size} : Shape{product(shape, 0, inputs), out_size};
    const Array values = init(key, flat, dtype);
    return reshape(values, shape);
  };
}

// ----------------------------------------------------------------------------- embedding, dropout
Array embed(const Array& embedding, Operand indices, OptionalDtype dtype) {
  const AtUser at(indices.at);
  if (!is_integer(indices.array.dtype())) {
    fail<TypeError>("embed: the input must be integers, got ", indices.array.type());
  }
  if (embedding.ndim() != 2) {
    fail<TypeError>("embed: the embedding must have 2 dimensions, got ", embedding.type());
  }
  const Array rows = promote_dtype({embedding}, dtype, /*inexact=*/false)[0];
  if (rows.shape()[0] == 1) {
    Shape out = indices.array.shape();
    out.push_back(rows.shape()[1]);
    return broadcast_to(rows, out);
  }
  return take(rows, indices, 0);
}

Array embed_attend(Operand query, const Array& embedding, OptionalDtype dtype) {
  const AtUser at(query.at);
  const Arrays in = promote_dtype({query.array, embedding}, dtype);
  const Array columns = transpose(in[1]);
  return dot(in[0], columns);
}

Array dropout(Operand x, double rate, const Array& key, const Shape& broadcast_dims) {
  const AtUser at(x.at);
  if (!(rate >= 0 && rate <= 1)) {
    fail<TypeError>("dropout: the rate must be between 0 and 1, got ", rate);
  }
  if (rate == 0) return x.array;
  if (rate == 1) return zeros_like(x.array);
  const double keep_prob = 1.0 - rate;
  Shape shape = x.array.shape();
  for (const std::int64_t axis : broadcast_dims) {
    shape[static_cast<std::size_t>(canonical_axis("dropout", axis, x.array.ndim()))] = 1;
  }
  const Array decisions = random::bernoulli(key, keep_prob, shape);
  const Array mask = broadcast_to(decisions, x.array.shape());
  const Array scaled = x.array / keep_prob;
  const Array zero = zeros_like(x.array);
  return lax::select_n(mask, {zero, scaled});
}

}  // namespace reprise::nn
