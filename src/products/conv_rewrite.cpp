#include "products/conv_rewrite.h"

#include "base/dtype.h"
#include "control/scan.h"
#include "ops/conv.h"
#include "ops/reduce.h"
#include "products/conv_spec.h"
#include "program/trace.h"
#include "transform/rewrite.h"

#include <algorithm>

namespace reprise::codegen {
namespace {

using namespace lax;  // NOLINT: rewrites read like formulas

constexpr std::int64_t most_products = 128;

// Sums are kept in this dtype: that of the evaluator, and for integers that of the result, which
// wraps alike.
Dtype sum_dtype(Dtype in, Dtype out) {
  if (!is_floating(in)) return out == Dtype::bool_ ? Dtype::u64 : out;
  return in == Dtype::f64 || out == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

// --------------------------------------------------------------------------------------- products
// The operands with their axes in order, groups apart:
//   lhs [batch, groups, features, spatial...]     rhs [groups, outputs, features, window...]
class Products {
 public:
  Products(const Conv& c, const Array& lhs, const Array& rhs)
      : c_(c),
        groups_(c.feature_groups * c.batch_groups),
        lhs_(ordered_lhs(lhs)),
        rhs_(ordered_rhs(rhs)) {
    for (const WindowAxis& a : c.axes(lhs.shape(), rhs.shape())) {
      out_.push_back(a.out());
      window_.push_back(a.window);
    }
  }

  Array run() const {
    const Array sum = summed();
    Ints order = iota_ints(sum.ndim());
    std::swap(order[0], order[1]);
    const Array by_batch = transpose(sum, order);
    Shape merged{by_batch.shape()[0], by_batch.shape()[1] * by_batch.shape()[2]};
    merged.insert(merged.end(), out_.begin(), out_.end());
    return transpose(reshape(by_batch, merged), inverse_permutation(c_.layout.out_spec));
  }

 private:
  static constexpr std::size_t first_spatial = 3;  // of both operands

  // [groups, batch, outputs, spatial...]
  Array summed() const {
    const std::int64_t window = element_count(window_), out = element_count(out_);
    if (std::min(window, out) > most_products) return in_a_loop(window);
    return window <= out ? by_window() : by_result();
  }

  // Holes and borders are filled, what negative padding cuts off is gone.
  Array padded(const Array& x) const {
    const Ints axes = spatial(c_.layout.lhs_spec);
    std::vector<PadDimension> config(x.shape().size());
    bool grows = false, shrinks = false;
    for (std::size_t s = 0; s < axes.size(); ++s) {
      const auto [low, high] = c_.padding[s];
      config[static_cast<std::size_t>(axes[s])] = {
          std::max<std::int64_t>(low, 0), std::max<std::int64_t>(high, 0), c_.lhs_dilation[s] - 1};
      grows |= low > 0 || high > 0 || c_.lhs_dilation[s] != 1;
      shrinks |= low < 0 || high < 0;
    }
    const Array grown = grows ? pad(x, const_like(x, 0), config) : x;
    if (!shrinks) return grown;
    Ints begin(grown.shape().size(), 0), end = grown.shape();
    for (std::size_t s = 0; s < axes.size(); ++s) {
      const auto d = static_cast<std::size_t>(axes[s]);
      begin[d] = std::max<std::int64_t>(-c_.padding[s].first, 0);
      end[d] -= std::max<std::int64_t>(-c_.padding[s].second, 0);
    }
    return slice(grown, begin, end);
  }
  Array ordered_lhs(const Array& lhs) const {
    const Array x = transpose(padded(lhs), c_.layout.lhs_spec);
    Shape shape = x.shape();
    if (c_.batch_groups == 1) {
      shape[1] /= groups_;
      shape.insert(shape.begin() + 1, groups_);
      return reshape(x, shape);
    }
    shape[0] /= groups_;
    shape.insert(shape.begin(), groups_);
    Ints order = iota_ints(x.ndim() + 1);
    std::swap(order[0], order[1]);
    return transpose(reshape(x, shape), order);
  }
  Array ordered_rhs(const Array& rhs) const {
    const Array x = transpose(rhs, c_.layout.rhs_spec);
    Shape shape = x.shape();
    shape[0] /= groups_;
    shape.insert(shape.begin(), groups_);
    return reshape(x, shape);
  }
  // Every steps[d]-th place of an operand, `sizes` of them from `first` on.
  static Array places(const Array& x, const Ints& first, const Shape& sizes, const Ints& steps) {
    Ints begin(first_spatial, 0), strides(first_spatial, 1);
    Ints end(x.shape().begin(), x.shape().begin() + first_spatial);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      begin.push_back(first[d]);
      end.push_back(first[d] + (sizes[d] - 1) * steps[d] + 1);
      strides.push_back(steps[d]);
    }
    return slice(x, begin, end, strides);
  }
  static Ints multiplied(const Ints& a, const Ints& b) {
    Ints out;
    for (std::size_t d = 0; d < a.size(); ++d) out.push_back(a[d] * b[d]);
    return out;
  }

  // What lies under one place of the window for all results at once, times the kernel there:
  // [groups, batch, spatial..., outputs].
  static Array product_of(const Array& under, const Array& kernel) {
    const Array matrix =
        reshape(kernel, Shape(kernel.shape().begin(), kernel.shape().begin() + first_spatial));
    return dot_general(under, matrix, {{2}, {2}, {1}, {0}});
  }
  Array by_window() const {
    const Ints ones(window_.size(), 1);
    std::optional<Array> sum;
    for_each_index(window_, [&](const Shape& w) {
      const Array under = places(lhs_, multiplied(w, c_.rhs_dilation), out_, c_.strides);
      const Array product = product_of(under, places(rhs_, w, ones, ones));
      sum = sum ? add_p.bind1({*sum, product}) : product;
    });
    return moveaxis(*sum, sum->ndim() - 1, 2);
  }
  // The same for so many places that they are not written out: a scan over their numbers.
  Array in_a_loop(std::int64_t window) const {
    Shape sum{lhs_.shape()[1], lhs_.shape()[0]};
    sum.insert(sum.end(), out_.begin(), out_.end());
    sum.push_back(rhs_.shape()[1]);
    const auto step = [&](const Arrays& x) {
      return Arrays{add_p.bind1({x[2], product_at(x[0], x[1], x[3])})};
    };
    const Type sums{lhs_.dtype(), sum};
    const Traced body = trace(step, {lhs_.type(), rhs_.type(), sums, Type{Dtype::i64, {}}},
                              {.transform = "convolutions", .body = true});
    const Array numbers = iota(Dtype::i64, {window}, 0);
    const Array all = bind_scan({.consts = 2, .carry = 1, .length = window}, body.program,
                                {lhs_, rhs_, zeros(sums), numbers})[0];
    return moveaxis(all, all.ndim() - 1, 2);
  }
  // `number` counts the window's places, the last axis first.
  Array product_at(const Array& lhs, const Array& rhs, const Array& number) const {
    const Array zero = const_like(number, 0);
    Arrays at_lhs(first_spatial + window_.size(), zero), at_rhs = at_lhs;
    Ints reach(lhs.shape().begin(), lhs.shape().begin() + first_spatial),
        one(rhs.shape().begin(), rhs.shape().begin() + first_spatial);
    for (std::size_t d = 0; d < window_.size(); ++d) {
      reach.push_back((out_[d] - 1) * c_.strides[d] + 1);
      one.push_back(1);
    }
    Array rest = number;
    for (std::size_t d = window_.size(); d-- > 0;) {
      const Array size = const_like(number, static_cast<double>(window_[d]));
      const Array place = rem(rest, size);
      at_rhs[first_spatial + d] = place;
      at_lhs[first_spatial + d] =
          mul(place, const_like(number, static_cast<double>(c_.rhs_dilation[d])));
      rest = div(rest, size);
    }
    const Array under =
        places(dynamic_slice(lhs, at_lhs, reach), Ints(out_.size(), 0), out_, c_.strides);
    return product_of(under, dynamic_slice(rhs, at_rhs, one));
  }
  // For each place of the result, all that lies under the window there.
  Array by_result() const {
    Ints contracted{2};
    for (std::size_t d = 0; d < window_.size(); ++d)
      contracted.push_back(static_cast<std::int64_t>(first_spatial + d));
    Arrays results;
    for_each_index(out_, [&](const Shape& o) {
      const Array under = places(lhs_, multiplied(o, c_.strides), window_, c_.rhs_dilation);
      // [groups, batch, outputs]
      const Array product = dot_general(under, rhs_, {contracted, contracted, {1}, {0}});
      Shape one = product.shape();
      one.push_back(1);
      results.push_back(reshape(product, one));
    });
    const Array all = results.size() == 1 ? results[0] : concatenate(results, 3);
    Shape shape(all.shape().begin(), all.shape().begin() + first_spatial);
    shape.insert(shape.end(), out_.begin(), out_.end());
    return reshape(all, shape);
  }

  const Conv& c_;
  std::int64_t groups_;
  Array lhs_, rhs_;
  Shape out_, window_;
};

// -------------------------------------------------------------------------------------- the pass
// Operands already have the dtype of the sums.
Array convolve(const Conv& c, const Array& lhs, const Array& rhs, const Type& out) {
  if (lhs.size() == 0 || rhs.size() == 0) return zeros(Type{lhs.dtype(), out.shape});
  if (library_spec(c.params(), lhs.type(), rhs.type(), Type{lhs.dtype(), out.shape}))
    return c(lhs, rhs);
  return Products(c, lhs, rhs).run();
}

bool is_rewritten(const Equation& e, const Type& lhs, const Type& rhs, const Type& out) {
  return e.prim == &conv_general_dilated_p && out.size() > 0 &&
         !library_spec(e.params, lhs, rhs, out);
}

Array rewritten(const Equation& e, const Arrays& x, const Type& out) {
  Conv c(e.params);
  c.preferred = std::nullopt;
  const Dtype sums = sum_dtype(x[0].dtype(), out.dtype);
  const Array lhs = convert(x[0], sums), rhs = convert(x[1], sums);
  return convert(convolve(c, lhs, rhs, out), out.dtype, out.weak_type);
}

FlatFunction formula_of(const Equation& e, const Types& in, const Type& out) {
  if (in.size() != 2 || !is_rewritten(e, in[0], in[1], out)) return nullptr;
  return [&](const Arrays& x) { return Arrays{rewritten(e, x, out)}; };
}

}  // namespace

Program rewrite_convolutions(const Program& p) {
  return replace_by_formulas(p, "convolutions", rewrite_convolutions, formula_of);
}

}  // namespace reprise::codegen
