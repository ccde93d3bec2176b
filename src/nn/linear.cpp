#include "reprise/errors.h"
#include "reprise/nn_linear.h"
#include "reprise/ops.h"

#include <algorithm>

namespace reprise::nn {

Dense::Dense(std::int64_t features, DenseFields fields, Location at)
    : Module(fields.name, at), features_(features), fields_(std::move(fields)) {}

Array Dense::call(Array x) {
  const AtUser at(made_at());
  if (x.ndim() == 0)
    fail<TypeError>("Dense: the input must have an axis of features, got ", x.type());
  const Array kernel =
      param("kernel", fields_.kernel_init, {x.shape(-1), features_}, fields_.param_dtype);
  OptionalArray bias;
  if (fields_.use_bias) bias = param("bias", fields_.bias_init, {features_}, fields_.param_dtype);
  return dense(x, kernel, bias, fields_.dtype);
}

// ------------------------------------------------------------------------------------ DenseGeneral
DenseGeneral::DenseGeneral(PerDimension features, DenseGeneralFields fields, Location at)
    : Module(fields.name, at), features_(features.expanded(1)), fields_(std::move(fields)) {}

Array DenseGeneral::call(Array x) {
  const AtUser at(made_at());
  const Shape batch =
      feature_shape(x, fields_.batch_dims.axes() ? fields_.batch_dims : ReduceAxes(Shape()));
  const Shape inputs = feature_shape(x, fields_.axis);
  Shape kernel_shape = batch, bias_shape = batch;
  kernel_shape.insert(kernel_shape.end(), inputs.begin(), inputs.end());
  kernel_shape.insert(kernel_shape.end(), features_.begin(), features_.end());
  bias_shape.insert(bias_shape.end(), features_.begin(), features_.end());
  const auto outputs = static_cast<std::int64_t>(features_.size());
  const Array kernel = param("kernel", flattened_init(fields_.kernel_init, outputs), kernel_shape,
                             fields_.param_dtype);
  OptionalArray bias;
  if (fields_.use_bias) {
    const auto all = static_cast<std::int64_t>(bias_shape.size());
    bias = param("bias", flattened_init(fields_.bias_init, all), bias_shape, fields_.param_dtype);
  }
  return dense_general(
      x, kernel, bias,
      {.axis = fields_.axis, .batch_dims = fields_.batch_dims, .dtype = fields_.dtype});
}

// ------------------------------------------------------------------------------------------ Einsum
namespace {

struct Equation {
  std::string lhs, rhs, out;  // letters; "." stands for the axes of an ellipsis
};

Equation parse_equation(std::string text) {
  std::string compact;
  for (const char c : text) {
    if (c != ' ') compact.push_back(c);
  }
  for (std::size_t at; (at = compact.find("...")) != std::string::npos;)
    compact.replace(at, 3, ".");
  const std::size_t comma = compact.find(','), arrow = compact.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      compact.find(',', comma + 1) != std::string::npos) {
    fail<TypeError>(
        "Einsum: the equation must have two operands and a result, as \"ab,bc->ac\", got \"", text,
        "\"");
  }
  return {compact.substr(0, comma), compact.substr(comma + 1, arrow - comma - 1),
          compact.substr(arrow + 2)};
}

// The shape of the bias, and the same with ones for the axes of the result that it lacks.
std::pair<Shape, Shape> bias_shapes(const Equation& equation, const Array& x, const Shape& kernel) {
  if (equation.rhs.size() != kernel.size() || equation.rhs.find('.') != std::string::npos) {
    fail<TypeError>("Einsum: the kernel must have a letter for each dimension, got \"",
                    equation.rhs, "\" for shape (", join(kernel, ", "), ")");
  }
  Shape own, broadcast;
  for (const char letter : equation.out) {
    const std::size_t at = equation.rhs.find(letter);
    if (letter == '.') {
      const auto letters = static_cast<std::int64_t>(equation.lhs.size()) - 1;
      broadcast.insert(broadcast.end(),
                       static_cast<std::size_t>(std::max<std::int64_t>(x.ndim() - letters, 0)), 1);
    } else if (at == std::string::npos) {
      broadcast.push_back(1);
    } else {
      own.push_back(kernel[at]);
      broadcast.push_back(kernel[at]);
    }
  }
  return {own, broadcast};
}

}  // namespace

Einsum::Einsum(Shape shape, EinsumFields fields, Location at)
    : Module(fields.name, at), shape_(std::move(shape)), fields_(std::move(fields)) {}

Array Einsum::call(Array x, std::string einsum_str) {
  const AtUser at(made_at());
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  const std::string text = merge_param("einsum_str", given(fields_.einsum_str), given(einsum_str));
  const Equation equation = parse_equation(text);
  const auto [bias_shape, broadcast] = bias_shapes(equation, x, shape_);
  const Array kernel = param("kernel", fields_.kernel_init, shape_, fields_.param_dtype);
  Array bias;
  if (fields_.use_bias) bias = param("bias", fields_.bias_init, bias_shape, fields_.param_dtype);
  const Arrays promoted = promote_dtype({x, kernel, bias}, fields_.dtype);
  const Array y = einsum(text, promoted[0], promoted[1]);
  if (!fields_.use_bias) return y;
  const Array wide = reshape(promoted[2], broadcast);
  return y + wide;
}

// -------------------------------------------------------------------------------------------- Conv
Conv::Conv(std::int64_t features, PerDimension kernel_size, ConvFields fields, Location at)
    : Module(fields.name, at),
      features_(features),
      kernel_size_(kernel_size.expanded(1)),
      fields_(std::move(fields)) {}

Array Conv::call(Array x) {
  const AtUser at(made_at());
  const std::int64_t groups = fields_.feature_group_count;
  if (x.ndim() <= static_cast<std::int64_t>(kernel_size_.size())) {
    fail<TypeError>("Conv: the input must have an axis for each of the ", kernel_size_.size(),
                    " dimensions of the window and one for features, got ", x.type());
  }
  if (groups <= 0 || x.shape(-1) % groups != 0) {
    fail<TypeError>("Conv: feature_group_count must divide the ", x.shape(-1),
                    " input features, got ", groups);
  }
  Shape kernel_shape = kernel_size_;
  kernel_shape.push_back(x.shape(-1) / groups);
  kernel_shape.push_back(features_);
  if (fields_.mask && fields_.mask->shape() != kernel_shape) {
    fail<TypeError>("Conv: the mask must have the shape of the kernel (", join(kernel_shape, ", "),
                    "), got ", fields_.mask->type());
  }
  Array kernel = param("kernel", fields_.kernel_init, kernel_shape, fields_.param_dtype);
  if (fields_.mask) kernel = kernel * *fields_.mask;
  OptionalArray bias;
  if (fields_.use_bias) bias = param("bias", fields_.bias_init, {features_}, fields_.param_dtype);
  return conv(x, kernel, bias,
              {.strides = fields_.strides,
               .padding = fields_.padding,
               .input_dilation = fields_.input_dilation,
               .kernel_dilation = fields_.kernel_dilation,
               .feature_group_count = groups,
               .dtype = fields_.dtype});
}

// ------------------------------------------------------------------------------------------- Embed
Embed::Embed(std::int64_t num_embeddings, std::int64_t features, EmbedFields fields, Location at)
    : Module(fields.name, at),
      num_embeddings_(num_embeddings),
      features_(features),
      fields_(std::move(fields)) {}

void Embed::setup() {
  const AtUser at(made_at());
  embedding_ =
      param("embedding", fields_.embedding_init, {num_embeddings_, features_}, fields_.param_dtype);
}
Array Embed::call(Array indices) {
  const AtUser at(made_at());
  return embed(embedding_, indices, fields_.dtype);
}
Array Embed::attend(Array query) {
  const AtUser at(made_at());
  return embed_attend(query, embedding_, fields_.dtype);
}

}  // namespace reprise::nn
