// Products and convolutions.
#include "ops/op_table.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise::op_table {
namespace {

using lax::Ints;

std::size_t pos(std::int64_t i) { return static_cast<std::size_t>(i); }
bool has(const Ints& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

// ------------------------------------------------------------------------------------ dot_general
// The axes of an operand that are neither contracted nor batch axes.
Ints free_axes(const Shape& shape, const Ints& contracting, const Ints& batch) {
  Ints axes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!has(contracting, d) && !has(batch, d)) axes.push_back(static_cast<std::int64_t>(d));
  }
  return axes;
}
// result[batch, lhs free, rhs free] = sum over the contracted axes
Numbers dot_reference(const Numbers& a, const Numbers& b, const lax::DotDimensionNumbers& n) {
  const Ints a_free = free_axes(a.shape, n.lhs_contracting, n.lhs_batch);
  const Ints b_free = free_axes(b.shape, n.rhs_contracting, n.rhs_batch);
  Shape out, contracted;
  for (std::int64_t d : n.lhs_batch) out.push_back(a.shape[pos(d)]);
  for (std::int64_t d : a_free) out.push_back(a.shape[pos(d)]);
  for (std::int64_t d : b_free) out.push_back(b.shape[pos(d)]);
  for (std::int64_t d : n.lhs_contracting) contracted.push_back(a.shape[pos(d)]);
  return tabulate(out, [&](const Shape& o) {
    Shape i(a.shape.size()), j(b.shape.size());
    std::size_t next = 0;
    for (std::size_t k = 0; k < n.lhs_batch.size(); ++k, ++next) {
      i[pos(n.lhs_batch[k])] = o[next];
      j[pos(n.rhs_batch[k])] = o[next];
    }
    for (std::int64_t d : a_free) i[pos(d)] = o[next++];
    for (std::int64_t d : b_free) j[pos(d)] = o[next++];
    double sum = 0;
    for_each_index(contracted, [&](const Shape& c) {
      for (std::size_t k = 0; k < c.size(); ++k) {
        i[pos(n.lhs_contracting[k])] = c[k];
        j[pos(n.rhs_contracting[k])] = c[k];
      }
      sum += a.at(i) * b.at(j);
    });
    return sum;
  });
}

void add_dots(Rows& rows) {
  const auto dot = [&](const char* what, const Shape& a, const Shape& b,
                       const lax::DotDimensionNumbers& n,
                       const std::vector<std::vector<Shape>>& variants = {}) {
    rows.push_back({.name = std::string("dot_general ") + what,
                    .f = [=](const Arrays& x) { return Arrays{lax::dot_general(x[0], x[1], n)}; },
                    .in = {{.shape = a}, {.shape = b}},
                    .reference = [=](const Many& x) { return Many{dot_reference(x[0], x[1], n)}; },
                    .primitive = &dot_general_p,
                    .dtypes = numbers,
                    .ulps = 32,
                    .variants = variants});
  };
  dot("of matrices", {2, 3}, {3, 4}, {{1}, {0}},
      {{{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}, {{1, 1}, {1, 1}}});
  dot("of transposed matrices", {3, 2}, {4, 3}, {{0}, {1}}, {{{3, 0}, {2, 3}}});
  dot("of vectors", {3}, {3}, {{0}, {0}}, {{{0}, {0}}});
  dot("of scalars", {}, {}, {});
  dot("outer", {2}, {3}, {}, {{{0}, {2}}, {{}, {3}}, {{2}, {}}});
  dot("matrix and vector", {2, 3}, {3}, {{1}, {0}});
  dot("batched", {2, 3, 4}, {2, 4, 2}, {{2}, {1}, {0}, {0}},
      {{{0, 3, 4}, {0, 4, 2}}, {{2, 3, 0}, {2, 0, 2}}});
  dot("batched in the middle", {3, 2, 4}, {4, 5, 2}, {{2}, {0}, {1}, {2}});
  dot("over two axes", {2, 3, 4}, {4, 3, 2}, {{1, 2}, {1, 0}});
  dot("over two axes, batched twice", {2, 3, 2, 2}, {3, 2, 2, 2}, {{2, 3}, {3, 2}, {0, 1}, {1, 0}});
  rows.push_back({.name = "dot_general in a wider dtype",
                  .f =
                      [](const Arrays& x) {
                        return Arrays{lax::dot_general(x[0], x[1], {{1}, {0}}, float32)};
                      },
                  .in = {{.shape = {2, 3}}, {.shape = {3, 4}}},
                  .reference =
                      [](const Many& x) {
                        return Many{dot_reference(x[0], x[1], {{1}, {0}})};
                      },
                  .primitive = &dot_general_p,
                  .dtypes = {float32, float16, bfloat16},
                  .ulps = 32});
}

// ------------------------------------------------------------------------------------ convolution
struct Convolution {
  const char* name;
  Shape lhs, rhs;
  lax::ConvOptions options;
  std::vector<std::vector<Shape>> variants = {};
};
lax::ConvOptions with_defaults(lax::ConvOptions c, std::size_t ndim) {
  if (!c.dimension_numbers) {
    Ints order;
    for (std::size_t d = 0; d < ndim; ++d) order.push_back(static_cast<std::int64_t>(d));
    c.dimension_numbers = {order, order, order};
  }
  for (Ints* v : {&c.window_strides, &c.lhs_dilation, &c.rhs_dilation}) {
    if (v->empty()) v->assign(ndim - 2, 1);
  }
  if (c.padding.empty()) c.padding.resize(ndim - 2);
  return c;
}
// By the definition in conv.cpp, with the operands in the orders that the layout says.
Numbers conv_reference(const Numbers& a, const Numbers& b, const lax::ConvOptions& options) {
  const std::size_t ndim = a.shape.size(), spatial = ndim - 2;
  const lax::ConvOptions c = with_defaults(options, ndim);
  const Ints &ls = c.dimension_numbers->lhs_spec, &rs = c.dimension_numbers->rhs_spec,
             &os = c.dimension_numbers->out_spec;
  const std::int64_t batch = a.shape[pos(ls[0])] / c.batch_group_count;
  const std::int64_t outputs = b.shape[pos(rs[0])], inputs = b.shape[pos(rs[1])];
  Shape out(ndim), window;
  out[pos(os[0])] = batch;
  out[pos(os[1])] = outputs;
  for (std::size_t s = 0; s < spatial; ++s) {
    const std::int64_t in = a.shape[pos(ls[s + 2])], w = b.shape[pos(rs[s + 2])];
    const std::int64_t holed_in = in == 0 ? 0 : (in - 1) * c.lhs_dilation[s] + 1;
    const std::int64_t holed_w = w == 0 ? 0 : (w - 1) * c.rhs_dilation[s] + 1;
    const std::int64_t room = holed_in + c.padding[s].first + c.padding[s].second - holed_w;
    out[pos(os[s + 2])] = room < 0 ? 0 : room / c.window_strides[s] + 1;
    window.push_back(w);
  }
  window.push_back(inputs);
  const std::int64_t groups = c.feature_group_count * c.batch_group_count;
  return tabulate(out, [&](const Shape& o) {
    const std::int64_t group = o[pos(os[1])] / (outputs / groups);
    double sum = 0;
    for_each_index(window, [&](const Shape& w) {
      Shape i(ndim), j(ndim);
      i[pos(ls[0])] = o[pos(os[0])] + (c.batch_group_count > 1 ? group * batch : 0);
      i[pos(ls[1])] = w[spatial] + (c.feature_group_count > 1 ? group * inputs : 0);
      j[pos(rs[0])] = o[pos(os[1])];
      j[pos(rs[1])] = w[spatial];
      for (std::size_t s = 0; s < spatial; ++s) {
        const std::int64_t at =
            o[pos(os[s + 2])] * c.window_strides[s] + w[s] * c.rhs_dilation[s] - c.padding[s].first;
        if (at < 0 || at % c.lhs_dilation[s] != 0) return;
        i[pos(ls[s + 2])] = at / c.lhs_dilation[s];
        if (i[pos(ls[s + 2])] >= a.shape[pos(ls[s + 2])]) return;
        j[pos(rs[s + 2])] = w[s];
      }
      sum += a.at(i) * b.at(j);
    });
    return sum;
  });
}

std::vector<Convolution> convolutions() {
  const auto nhwc = lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  return {
      {"in one dimension",
       {2, 3, 5},
       {4, 3, 2},
       {},
       {{{0, 3, 5}, {4, 3, 2}}, {{2, 0, 5}, {4, 0, 2}}}},
      {"in two dimensions", {2, 2, 4, 3}, {3, 2, 2, 2}, {}},
      {"without space", {2, 3}, {4, 3}, {}},
      {"with strides", {1, 2, 5, 4}, {2, 2, 2, 3}, {.window_strides = {2, 1}}},
      {"with strides that leave a rest", {1, 1, 6}, {2, 1, 3}, {.window_strides = {2}}},
      {"padded", {1, 2, 3, 3}, {2, 2, 2, 2}, {.padding = {{1, 0}, {2, 1}}}},
      {"cut", {1, 2, 6}, {2, 2, 2}, {.padding = {{-1, -2}}}},
      {"with holes in the input", {1, 2, 4}, {2, 2, 2}, {.lhs_dilation = {2}}},
      {"with holes in the window", {1, 2, 6}, {2, 2, 3}, {.rhs_dilation = {2}}},
      {"with everything",
       {2, 2, 5, 4},
       {3, 2, 2, 3},
       {.window_strides = {2, 1},
        .padding = {{1, 2}, {0, 2}},
        .lhs_dilation = {1, 2},
        .rhs_dilation = {2, 1}}},
      {"in groups of features", {2, 4, 5}, {6, 2, 2}, {.feature_group_count = 2}},
      {"by depth", {1, 3, 4}, {3, 1, 2}, {.padding = {{1, 0}}, .feature_group_count = 3}},
      {"in groups of the batch", {4, 2, 5}, {6, 2, 2}, {.batch_group_count = 2}},
      {"with channels last", {2, 4, 3, 2}, {2, 2, 2, 3}, {.dimension_numbers = nhwc}},
      {"with channels last, in groups",
       {2, 4, 3, 4},
       {2, 2, 2, 2},
       {.window_strides = {1, 2},
        .padding = {{0, 1}, {1, 1}},
        .dimension_numbers = nhwc,
        .feature_group_count = 2}},
  };
}
void add_convolutions(Rows& rows) {
  for (const Convolution& c : convolutions()) {
    rows.push_back(
        {.name = std::string("conv_general_dilated ") + c.name,
         .f =
             [=](const Arrays& x) {
               return Arrays{lax::conv_general_dilated(x[0], x[1], c.options)};
             },
         .in = {{.shape = c.lhs}, {.shape = c.rhs}},
         .reference = [=](const Many& x) { return Many{conv_reference(x[0], x[1], c.options)}; },
         .primitive = &conv_general_dilated_p,
         .dtypes = numbers,
         .ulps = 64,
         .variants = c.variants});
  }
}

}  // namespace

Rows product_rows() {
  Rows rows;
  add_dots(rows);
  add_convolutions(rows);
  return rows;
}

}  // namespace reprise::op_table
