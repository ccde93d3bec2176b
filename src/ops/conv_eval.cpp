// Plain evaluation of convolutions.
#include "ops/conv.h"
#include "ops/dot.h"
#include "ops/reduce.h"

#include <algorithm>
#include <vector>

namespace reprise {
namespace {

// The windows under a block of output positions become rows of a matrix; its product with the
// kernel, as [input feature and window, output feature], is the output.
template <class P>
class ConvEvaluator {
 public:
  ConvEvaluator(const Conv& c, const Array& lhs, const Array& rhs)
      : axes_(c.axes(lhs.shape(), rhs.shape())),
        groups_(c.feature_groups * c.batch_groups),
        batch_groups_(c.batch_groups),
        batch_(size_at(lhs.shape(), c.layout.lhs_spec[0])),
        features_(size_at(lhs.shape(), c.layout.lhs_spec[1])),
        inputs_(size_at(rhs.shape(), c.layout.rhs_spec[1])),
        outputs_(size_at(rhs.shape(), c.layout.rhs_spec[0]) / groups_) {
    const Shape in = sizes_at(lhs.shape(), spatial(c.layout.lhs_spec));
    strides_ = row_major_strides(in);
    plane_ = element_count(in);
    for (const WindowAxis& a : axes_) {
      out_.push_back(a.out());
      window_.push_back(a.window);
    }
    positions_ = element_count(out_);
    taps_ = element_count(window_);
    lhs_.resize(static_cast<std::size_t>(lhs.size()));
    copy_permuted(lhs, c.layout.lhs_spec, lhs_.data());
    pack_kernel(c, rhs);
  }

  // [batch / batch groups, groups, spatial..., outputs of a group]
  Shape shape() const {
    Shape s{batch_ / batch_groups_, groups_};
    s.insert(s.end(), out_.begin(), out_.end());
    s.push_back(outputs_);
    return s;
  }

  template <class Out>
  void run(Out* out) {
    const std::int64_t depth = inputs_ * taps_;
    const std::int64_t rows =
        std::max<std::int64_t>(1, (1 << 18) / std::max<std::int64_t>(1, depth));
    for (std::int64_t first = 0; first < positions_; first += rows) {
      const std::int64_t count = std::min(rows, positions_ - first);
      locate(first, count);
      for (std::int64_t n = 0; n < batch_ / batch_groups_; ++n) {
        for (std::int64_t g = 0; g < groups_; ++g) {
          gather(n, g, count);
          multiply_matrices(patches_.data(), kernel_.data() + g * depth * outputs_,
                            out + ((n * groups_ + g) * positions_ + first) * outputs_,
                            MatrixSizes{count, depth, outputs_});
        }
      }
    }
  }

 private:
  // [groups, inputs, window..., outputs of a group]
  void pack_kernel(const Conv& c, const Array& rhs) {
    Ints order{c.layout.rhs_spec[1]};
    const Ints window_axes = spatial(c.layout.rhs_spec);
    order.insert(order.end(), window_axes.begin(), window_axes.end());
    order.push_back(c.layout.rhs_spec[0]);
    std::vector<P> all(static_cast<std::size_t>(rhs.size()));
    copy_permuted(rhs, order, all.data());
    kernel_.resize(all.size());
    auto to = kernel_.begin();
    for (std::int64_t g = 0; g < groups_; ++g) {
      for (std::int64_t k = 0; k < inputs_ * taps_; ++k) {
        to = std::copy_n(all.begin() + (k * groups_ + g) * outputs_, outputs_, to);
      }
    }
  }
  // The offsets of the window elements in an input plane, for `count` output positions.
  void locate(std::int64_t first, std::int64_t count) {
    offsets_.clear();
    Shape index(out_.size());
    for (std::int64_t row = first; row < first + count; ++row) {
      std::int64_t rest = row;
      for (std::size_t d = out_.size(); d-- > 0; rest /= out_[d]) index[d] = rest % out_[d];
      for_each_index(window_, [&](const Shape& w) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < w.size() && offset >= 0; ++d) {
          const std::int64_t at = axes_[d].source(index[d], w[d]);
          offset = at < 0 ? -1 : offset + at * strides_[d];
        }
        offsets_.push_back(offset);
      });
    }
  }
  void gather(std::int64_t n, std::int64_t g, std::int64_t count) {
    const bool by_batch = batch_groups_ > 1;
    const std::int64_t image = by_batch ? g * (batch_ / batch_groups_) + n : n;
    const std::int64_t feature = by_batch ? 0 : g * inputs_;
    const P* in = lhs_.data() + (image * features_ + feature) * plane_;
    patches_.resize(static_cast<std::size_t>(count * inputs_ * taps_));
    P* to = patches_.data();
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t* offsets = offsets_.data() + row * taps_;
      for (std::int64_t i = 0; i < inputs_; ++i) {
        for (std::int64_t k = 0; k < taps_; ++k) {
          *to++ = offsets[k] < 0 ? P{0} : in[i * plane_ + offsets[k]];
        }
      }
    }
  }

  WindowAxes axes_;
  std::int64_t groups_, batch_groups_, batch_, features_, inputs_, outputs_;
  Shape strides_, out_, window_;
  std::int64_t plane_ = 0, positions_ = 0, taps_ = 0;
  std::vector<P> lhs_, kernel_, patches_;
  Ints offsets_;
};

template <class P>
Array evaluate(const Conv& c, const Array& lhs, const Array& rhs, const Type& out) {
  NewArray empty(out);
  if (empty.size() == 0) return std::move(empty).finish();
  ConvEvaluator<P> evaluator(c, lhs, rhs);
  NewArray canonical(Type{out.dtype, evaluator.shape()});
  visit_dtype(out.dtype, [&](auto tag) { evaluator.run(canonical.data<decltype(tag)>()); });
  // The axes [batch, group, spatial..., output] in the order of the result; group and output are
  // the two parts of its feature axis.
  Ints order;
  for (std::int64_t role : inverse_permutation(c.layout.out_spec)) {
    if (role == 0) order.push_back(0);
    if (role == 1) order.insert(order.end(), {1, out.ndim()});
    if (role > 1) order.push_back(role);
  }
  const Array computed = std::move(canonical).finish();
  const Type split{out.dtype, sizes_at(computed.shape(), order)};
  return with_type(transpose_p.eval({computed}, {{"permutation", order}}, {split})[0], out);
}

}  // namespace

Arrays conv_eval(const Arrays& x, const Params& params, const Types& out) {
  const Conv c(params);
  if (x[0].dtype() == Dtype::f64 || out[0].dtype == Dtype::f64) {
    return {evaluate<double>(c, x[0], x[1], out[0])};
  }
  if (is_floating(x[0].dtype())) return {evaluate<float>(c, x[0], x[1], out[0])};
  return {evaluate<std::uint64_t>(c, x[0], x[1], out[0])};
}

}  // namespace reprise
