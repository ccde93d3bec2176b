// Linear layers: parameters, then the shared arithmetic.
#include "nnx/parameters.h"
#include "nnx/record.h"
#include "reprise/errors.h"
#include "reprise/nnx/layers.h"

namespace reprise::nnx {
namespace {

std::int64_t product(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}
Shape concat(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, const Rngs& rngs, const LinearOptions& o,
               Location at)
    : in_features(in),
      out_features(out),
      use_bias(o.use_bias),
      dtype(o.dtype),
      param_dtype(o.param_dtype) {
  const AtUser scope(at);
  kernel = Param(o.kernel_init(rngs.params(), {in, out}, param_dtype));
  if (use_bias) bias = Param(o.bias_init(rngs.params(), {out}, param_dtype));
}
Array Linear::operator()(Operand x) const {
  return detail::recorded(*this, x, nn::dense(x, kernel, detail::value_of(bias), dtype));
}

LinearGeneral::LinearGeneral(const PerDimension& in, const PerDimension& out, const Rngs& rngs,
                             const LinearGeneralOptions& o, Location at)
    : in_features(in.expanded(1)),
      out_features(out.expanded(1)),
      axis(o.axis.expanded(1)),
      batch_axis(o.batch_axis),
      use_bias(o.use_bias),
      dtype(o.dtype),
      param_dtype(o.param_dtype) {
  const AtUser scope(at);
  if (in_features.size() != axis.size()) {
    fail<TypeError>("LinearGeneral: in_features and axis must have the same length, got ",
                    in_features.size(), " and ", axis.size());
  }
  Shape batch;
  for (std::size_t i = 0; i < batch_axis.size(); ++i) {
    if (batch_axis[i].first != static_cast<std::int64_t>(i)) {
      fail<TypeError>("LinearGeneral: batch axes must be the leading ones in order, got axis ",
                      batch_axis[i].first, " in place ", i);
    }
    batch.push_back(batch_axis[i].second);
  }
  const Shape kernel_shape = concat(concat(batch, in_features), out_features);
  const Initializer flat =
      nn::flattened_init(o.kernel_init, static_cast<std::int64_t>(out_features.size()));
  kernel = Param(flat(rngs.params(), kernel_shape, param_dtype));
  if (!use_bias) return;
  const Shape bias_shape = concat(batch, out_features);
  const Array row = o.bias_init(rngs.params(), {product(bias_shape)}, param_dtype);
  bias = Param(reshape(row, bias_shape));
}
Array LinearGeneral::operator()(Operand x) const {
  Shape batch_dims;
  for (const auto& entry : batch_axis) batch_dims.push_back(entry.first);
  const ReduceAxes batch = batch_dims.empty() ? ReduceAxes() : ReduceAxes(batch_dims);
  const Array y = nn::dense_general(x, kernel, detail::value_of(bias),
                                    {.axis = axis, .batch_dims = batch, .dtype = dtype});
  return detail::recorded(*this, x, y);
}

// ------------------------------------------------------------------------------------------ Einsum
namespace {

struct Equation {
  std::string lhs, rhs, out;
};
Equation parse(const std::string& text) {
  std::string t;
  for (char c : text) {
    if (c != ' ') t += c;
  }
  const auto comma = t.find(','), arrow = t.find("->");
  if (comma == std::string::npos || arrow == std::string::npos ||
      t.find(',', comma + 1) != std::string::npos || arrow < comma) {
    fail<TypeError>("Einsum: the equation must have two operands and '->', got '", text, "'");
  }
  return {t.substr(0, comma), t.substr(comma + 1, arrow - comma - 1), t.substr(arrow + 2)};
}
// The bias with axes of size 1 where the result has axes that the kernel lacks.
Shape bias_shape(const Equation& e, const Array& y) {
  Shape shape;
  std::int64_t axis = 0;
  const auto letters = static_cast<std::int64_t>(e.out.size());
  for (std::size_t i = 0; i < e.out.size(); ++i) {
    if (e.out.compare(i, 3, "...") == 0) {
      const std::int64_t more = y.ndim() - (letters - 3);
      shape.insert(shape.end(), static_cast<std::size_t>(more), 1);
      axis += more;
      i += 2;
      continue;
    }
    const auto in_kernel = e.rhs.find(e.out[i]);
    shape.push_back(in_kernel == std::string::npos ? 1 : y.shape(axis));
    ++axis;
  }
  return shape;
}

}  // namespace

Einsum::Einsum(std::string equation, const Shape& kernel_sizes, const Rngs& rngs,
               const EinsumOptions& o, Location at)
    : einsum_str(std::move(equation)), dtype(o.dtype), param_dtype(o.param_dtype) {
  const AtUser scope(at);
  parse(einsum_str);
  kernel = Param(o.kernel_init(rngs.params(), kernel_sizes, param_dtype));
  if (o.bias_shape) bias = Param(o.bias_init(rngs.params(), *o.bias_shape, param_dtype));
}
Array Einsum::operator()(Operand x) const {
  const AtUser scope(x.at);
  const Arrays in = nn::promote_dtype({x.array, kernel, bias ? Array(*bias) : Array()}, dtype);
  const Array y = einsum(einsum_str, in[0], in[1]);
  if (!bias) return detail::recorded(*this, x, y);
  return detail::recorded(*this, x, y + reshape(in[2], bias_shape(parse(einsum_str), y)));
}

// ------------------------------------------------------------------------------------------- Embed
Embed::Embed(std::int64_t count, std::int64_t width, const Rngs& rngs, const EmbedOptions& o,
             Location at)
    : num_embeddings(count),
      features(width),
      dtype(o.dtype.value_or(o.param_dtype)),
      param_dtype(o.param_dtype) {
  const AtUser scope(at);
  embedding = Param(o.embedding_init(rngs.params(), {count, width}, param_dtype));
}
Array Embed::operator()(Operand indices) const {
  return detail::recorded(*this, indices, nn::embed(embedding, indices, dtype));
}
Array Embed::attend(Operand query) const { return nn::embed_attend(query, embedding, dtype); }

// -------------------------------------------------------------------------------------------- Conv
Conv::Conv(std::int64_t in, std::int64_t out, const PerDimension& window, const Rngs& rngs,
           const ConvOptions& o, Location at)
    : mask(o.mask),
      in_features(in),
      out_features(out),
      kernel_size(window.expanded(1)),
      strides(o.strides.expanded(kernel_size.size())),
      input_dilation(o.input_dilation.expanded(kernel_size.size())),
      kernel_dilation(o.kernel_dilation.expanded(kernel_size.size())),
      feature_group_count(o.feature_group_count),
      use_bias(o.use_bias),
      dtype(o.dtype),
      param_dtype(o.param_dtype) {
  const AtUser scope(at);
  if (feature_group_count <= 0 || in % feature_group_count != 0) {
    fail<TypeError>("Conv: feature_group_count must divide in_features, got ", feature_group_count,
                    " and ", in);
  }
  if (const auto* name = std::get_if<std::string>(&o.padding.value())) {
    padding = *name;
  } else if (const auto* all = std::get_if<nn::Padding::Sides>(&o.padding.value())) {
    padding_widths.assign(kernel_size.size(), {all->low, all->high});
  } else {
    for (const nn::Padding::Sides& s :
         std::get<std::vector<nn::Padding::Sides>>(o.padding.value())) {
      padding_widths.emplace_back(s.low, s.high);
    }
  }
  const Shape kernel_shape = concat(kernel_size, {in / feature_group_count, out});
  if (mask && mask->shape() != kernel_shape) {
    fail<TypeError>("Conv: the mask must have the shape of the kernel, got ", mask->type(), " for ",
                    Type{param_dtype, kernel_shape});
  }
  kernel = Param(o.kernel_init(rngs.params(), kernel_shape, param_dtype));
  if (use_bias) bias = Param(o.bias_init(rngs.params(), {out}, param_dtype));
}
Array Conv::operator()(Operand x) const {
  const AtUser scope(x.at);
  std::vector<nn::Padding::Sides> widths;
  for (const auto& [low, high] : padding_widths) widths.emplace_back(low, high);
  const Array weights = mask ? multiply(kernel, *mask) : Array(kernel);
  const Array y = nn::conv(x, weights, detail::value_of(bias),
                           {.strides = strides,
                            .padding = padding.empty() ? nn::Padding(widths) : nn::Padding(padding),
                            .input_dilation = input_dilation,
                            .kernel_dilation = kernel_dilation,
                            .feature_group_count = feature_group_count,
                            .dtype = dtype});
  return detail::recorded(*this, x, y);
}

// ---------------------------------------------------------------------------------------- members
REPRISE_FIELDS_OF(Linear, kernel, bias, in_features, out_features, use_bias, dtype, param_dtype)
REPRISE_FIELDS_OF(LinearGeneral, kernel, bias, in_features, out_features, axis, batch_axis,
                  use_bias, dtype, param_dtype)
REPRISE_FIELDS_OF(Einsum, kernel, bias, einsum_str, dtype, param_dtype)
REPRISE_FIELDS_OF(Embed, embedding, num_embeddings, features, dtype, param_dtype)
REPRISE_FIELDS_OF(Conv, kernel, bias, mask, in_features, out_features, kernel_size, strides,
                  padding, padding_widths, input_dilation, kernel_dilation, feature_group_count,
                  use_bias, dtype, param_dtype)

}  // namespace reprise::nnx
