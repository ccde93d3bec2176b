#include "plan/view.h"

#include "base/dtype.h"
#include "ops/records.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace reprise::plan {
namespace {

std::int64_t product(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::optional<View> transpose_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  View v{x.root, x.offset, out.shape, {}};
  for (std::int64_t d : e.params.get<Ints>("permutation"))
    v.strides.push_back(x.strides[static_cast<std::size_t>(d)]);
  return v;
}
std::optional<View> broadcast_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  View v{x.root, x.offset, out.shape, Ints(out.shape.size(), 0)};
  const auto& dims = e.params.get<Ints>("broadcast_dimensions");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (x.shape[i] != 1) v.strides[static_cast<std::size_t>(dims[i])] = x.strides[i];
  }
  return v;
}
std::optional<View> reshape_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  if (!std::holds_alternative<None>(*e.params.find("dimensions"))) return std::nullopt;
  return reshaped(x, out.shape);
}
std::optional<View> squeeze_view(const Equation&, std::size_t, const View& x, const Type& out) {
  return reshaped(x, out.shape);
}
std::optional<View> rev_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  View v{x.root, x.offset, out.shape, x.strides};
  for (std::int64_t d : e.params.get<Ints>("dimensions")) {
    const auto i = static_cast<std::size_t>(d);
    if (x.shape[i] > 0) v.offset += (x.shape[i] - 1) * x.strides[i];
    v.strides[i] = -x.strides[i];
  }
  return v;
}
std::optional<View> slice_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  View v{x.root, x.offset, out.shape, x.strides};
  const auto& start = e.params.get<Ints>("start_indices");
  const Ints* steps = std::get_if<Ints>(e.params.find("strides"));
  for (std::size_t i = 0; i < start.size(); ++i) {
    v.offset += start[i] * x.strides[i];
    if (steps != nullptr) v.strides[i] *= (*steps)[i];
  }
  return v;
}
std::optional<View> split_view(const Equation& e, std::size_t k, const View& x, const Type& out) {
  const auto axis = static_cast<std::size_t>(e.params.get<std::int64_t>("axis"));
  const auto& sizes = e.params.get<Ints>("sizes");
  View v{x.root, x.offset, out.shape, x.strides};
  v.offset += std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k),
                              std::int64_t{0}) *
              x.strides[axis];
  return v;
}
std::optional<View> unstack_view(const Equation& e, std::size_t k, const View& x, const Type& out) {
  const auto axis = e.params.get<std::int64_t>("axis");
  View v{x.root, x.offset, out.shape, x.strides};
  v.offset += static_cast<std::int64_t>(k) * x.strides[static_cast<std::size_t>(axis)];
  v.strides.erase(v.strides.begin() + axis);
  return v;
}
// A reduction over dimensions of size 1 changes nothing but the shape.
std::optional<View> reduce_view(const Equation& e, std::size_t, const View& x, const Type& out) {
  for (std::int64_t d : e.params.get<Ints>("axes")) {
    if (x.shape[static_cast<std::size_t>(d)] != 1) return std::nullopt;
  }
  return reshaped(x, out.shape);
}
std::optional<View> same_view(const Equation&, std::size_t, const View& x, const Type&) {
  return x;
}

using ViewRule = std::optional<View> (*)(const Equation&, std::size_t, const View&, const Type&);
const std::unordered_map<const Primitive*, ViewRule>& view_rules() {
  static const auto& rules = *new const std::unordered_map<const Primitive*, ViewRule>{
      {&transpose_p, transpose_view},
      {&broadcast_in_dim_p, broadcast_view},
      {&reshape_p, reshape_view},
      {&squeeze_p, squeeze_view},
      {&rev_p, rev_view},
      {&slice_p, slice_view},
      {&split_p, split_view},
      {&unstack_p, unstack_view},
      {&name_p, same_view},
      {&stop_gradient_p, same_view},
      {&copy_p, same_view},
      {&reduce_sum_p, reduce_view},
      {&reduce_max_p, reduce_view},
      {&reduce_min_p, reduce_view},
      {&reduce_prod_p, reduce_view},
      {&reduce_and_p, reduce_view},
      {&reduce_or_p, reduce_view}};
  return rules;
}

}  // namespace

View dense_view(Var root, const Shape& shape) { return {root, 0, shape, row_major_strides(shape)}; }

bool is_dense(const View& v) {
  if (v.offset != 0) return false;
  const Shape dense = row_major_strides(v.shape);
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    if (v.shape[i] == 0) return true;
    if (v.shape[i] != 1 && v.strides[i] != dense[i]) return false;
  }
  return true;
}

std::optional<View> view_of(const Equation& e, std::size_t k, const View& operand,
                            const Type& out) {
  const auto rule = view_rules().find(e.prim);
  if (rule == view_rules().end()) return std::nullopt;
  return rule->second(e, k, operand, out);
}

// Dimensions of both sides are matched in groups of equal products; inside a group the old ones
// must walk with one stride.
std::optional<View> reshaped(const View& v, const Shape& shape) {
  View out{v.root, v.offset, shape, Ints(shape.size(), 0)};
  if (product(v.shape) == 0) return out;
  std::size_t i = 0, j = 0;
  while (i < v.shape.size() || j < shape.size()) {
    const std::size_t old_begin = i, new_begin = j;
    std::int64_t old_size = i < v.shape.size() ? v.shape[i++] : 1,
                 new_size = j < shape.size() ? shape[j++] : 1;
    while (old_size != new_size) {
      if (old_size < new_size)
        old_size *= v.shape[i++];
      else
        new_size *= shape[j++];
    }
    std::int64_t stride = 0, walked = 1;  // of the innermost dimension larger than 1
    for (std::size_t d = i; d-- > old_begin;) {
      if (v.shape[d] == 1) continue;
      if (walked == 1)
        stride = v.strides[d];
      else if (v.strides[d] != stride * walked)
        return std::nullopt;
      walked *= v.shape[d];
    }
    std::int64_t inner = 1;
    for (std::size_t d = j; d-- > new_begin;) {
      out.strides[d] = stride * inner;
      inner *= shape[d];
    }
  }
  return out;
}

View broadcast(const View& v, const Shape& shape) {
  View out{v.root, v.offset, shape, Ints(shape.size(), 0)};
  const std::size_t lead = shape.size() - v.shape.size();
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    if (v.shape[i] != 1) out.strides[lead + i] = v.strides[i];
  }
  return out;
}

Ints domain_of(const Shape& shape) {
  Ints out;
  for (std::int64_t d : shape) {
    if (d != 1) out.push_back(d);
  }
  return out;
}

std::optional<Ints> common_domain(const Ints& a, const Ints& b) {
  if (a == b) return a;
  if (product(a) != product(b) || product(a) == 0) return std::nullopt;
  Ints out;  // innermost first
  std::size_t i = a.size(), j = b.size();
  std::int64_t left_a = 1, left_b = 1;  // of the loops being taken apart
  while (true) {
    if (left_a == 1 && i > 0) left_a = a[--i];
    if (left_b == 1 && j > 0) left_b = b[--j];
    if (left_a == 1 && left_b == 1) break;
    const std::int64_t piece = std::min(left_a, left_b);
    if (left_a % piece != 0 || left_b % piece != 0) return std::nullopt;
    out.push_back(piece);
    left_a /= piece;
    left_b /= piece;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Ints refined_strides(const Ints& strides, const Ints& sizes, const Ints& domain) {
  Ints out(domain.size(), 0);
  std::size_t k = domain.size();
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    std::int64_t inner = 1;
    while (inner < sizes[d]) {
      out[--k] = strides[d] * inner;
      inner *= domain[k];
    }
  }
  return out;
}

}  // namespace reprise::plan
