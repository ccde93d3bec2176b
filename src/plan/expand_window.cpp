#include "plan/expand_window.h"

#include "base/dtype.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/window.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace reprise::plan {
namespace {

using namespace lax;  // NOLINT: expansions read like formulas

constexpr std::int64_t most_taps = 64;  // elements of a window, each read by itself

// --------------------------------------------------------------------------------------- geometry
std::int64_t taps_of(const WindowAxes& axes) {
  std::int64_t taps = 1;
  for (const WindowAxis& a : axes)
    taps = std::min(taps, most_taps + 1) * std::min(a.window, most_taps + 1);
  return taps;
}
bool has_no_cuts(const WindowAxes& axes) {
  return std::all_of(axes.begin(), axes.end(),
                     [](const WindowAxis& a) { return a.low >= 0 && a.high >= 0; });
}
Ints outputs_of(const WindowAxes& axes) {
  Ints out;
  for (const WindowAxis& a : axes) out.push_back(a.out());
  return out;
}

Ints window_sizes(const WindowAxes& axes) {
  Ints sizes;
  for (const WindowAxis& a : axes) sizes.push_back(a.window);
  return sizes;
}

// The operand with its holes and borders filled.
Array padded(const Array& x, const WindowAxes& axes, double filling) {
  std::vector<PadDimension> config;
  bool changes = false;
  for (const WindowAxis& a : axes) {
    config.push_back({a.low, a.high, a.base_dilation - 1});
    changes |= a.low != 0 || a.high != 0 || a.base_dilation != 1;
  }
  return changes ? pad(x, const_like(x, filling), config) : x;
}
// One element of the window, for all windows at once.
Array tap_of(const Array& whole, const WindowAxes& axes, const Ints& tap) {
  Ints first, limit, strides;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    first.push_back(tap[d] * axes[d].window_dilation);
    limit.push_back(first[d] + (axes[d].out() - 1) * axes[d].stride + 1);
    strides.push_back(axes[d].stride);
  }
  return slice(whole, first, limit, strides);
}

// ------------------------------------------------------------------------------------- reductions
const Primitive* step_of(const Equation& e) {
  if (e.prim == &reduce_window_max_p) return &max_p;
  if (e.prim == &reduce_window_min_p) return &min_p;
  return e.prim == &reduce_window_sum_p ? &add_p : nullptr;
}

// The window's elements in row-major order.
Array reduced(const Array& x, const Equation& e) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double neutral = e.prim == &reduce_window_sum_p   ? 0
                         : e.prim == &reduce_window_max_p ? -infinity
                                                          : infinity;
  const WindowAxes axes = window_axes(x.shape(), e.params);
  const Array whole = padded(x, axes, neutral);
  std::optional<Array> result;
  for_each_index(window_sizes(axes), [&](const Ints& tap) {
    const Array element = tap_of(whole, axes, tap);
    result = result ? step_of(e)->bind1({*result, element}) : element;
  });
  return *result;
}

// ------------------------------------------------------------------------------------- selections
// The element that a window selects: walking through it, the chosen one is kept as long as `ge` (or
// `le`) says so.
struct Selection {
  explicit Selection(const Equation& e)
      : keeps(e.params.get<std::string>("select_prim") == "ge" ? ge_p : le_p) {}
  double neutral() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return &keeps == &ge_p ? -infinity : infinity;
  }
  const Primitive& keeps;
};

bool can_select(const Type& x, const WindowAxes& axes) {
  const bool no_holes = std::all_of(axes.begin(), axes.end(),
                                    [](const WindowAxis& a) { return a.base_dilation == 1; });
  return no_holes && has_no_cuts(axes) && taps_of(axes) <= most_taps && is_floating(x.dtype);
}

// Whether the tap lies inside the operand; nullopt: always.
std::optional<Array> is_inside(const WindowAxes& axes, const Ints& tap) {
  std::optional<Array> inside;
  const Shape out = outputs_of(axes);
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const WindowAxis& a = axes[d];
    const std::int64_t shift = tap[d] * a.window_dilation - a.low;
    if (shift >= 0 && (a.out() - 1) * a.stride + shift < a.in) continue;
    const std::int64_t first = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
    const std::int64_t last = shift < a.in ? (a.in - 1 - shift) / a.stride : -1;
    const bool fits =
        std::max({a.out(), a.in, first, last}) <= std::numeric_limits<std::int32_t>::max();
    const Dtype counts = fits ? Dtype::i32 : Dtype::i64;
    const Array o = iota(counts, out, static_cast<std::int64_t>(d));
    const Array after = ge(o, filled(out, make_literal(counts, static_cast<double>(first))));
    const Array here =
        bitwise_and(after, le(o, filled(out, make_literal(counts, static_cast<double>(last)))));
    inside = inside ? bitwise_and(*inside, here) : here;
  }
  return inside;
}

// select_and_gather_add: t where x is extreme, 0 in windows that have nothing but padding and
// neutral elements.
Array gathered(const Array& t, const Array& x, const Equation& e) {
  const Selection selection(e);
  const WindowAxes axes = window_axes(x.shape(), e.params);
  const Array values = padded(t, axes, 0), operand = padded(x, axes, 0);
  const Shape out = outputs_of(axes);
  Array extreme = full_like({x.dtype(), out}, selection.neutral()),
        result = full_like({t.dtype(), out}, 0);
  for_each_index(window_sizes(axes), [&](const Ints& tap) {
    const Array candidate = tap_of(operand, axes, tap);
    Array kept = selection.keeps.bind1({extreme, candidate});
    if (const auto inside = is_inside(axes, tap)) kept = bitwise_or(kept, bitwise_not(*inside));
    result = select_n(kept, {tap_of(values, axes, tap), result});
    extreme = select_n(kept, {candidate, extreme});
  });
  return result;
}

// ----------------------------------------------------------------------------------------- scatter
// select_and_scatter_add, from the side of its result. Along an axis, position p (counted from the
// start of the padding) is q * stride + r, and it lies in the windows q - j at the tap j * stride +
// r, for all j < reach. The result is computed for all (q, r): as [quotients, residues] for each
// axis.
struct Cover {
  explicit Cover(const WindowAxis& a)
      : stride(a.stride),
        reach((a.window + a.stride - 1) / a.stride),
        first(a.low / a.stride),
        quotients((a.low + a.in - 1) / a.stride - first + 1),
        start(a.low - first * a.stride) {}
  std::int64_t stride, reach, first, quotients;
  std::int64_t start;  // of the operand in the positions covered
};

class Scatter {
 public:
  Scatter(const Equation& e, const Array& ct, const Array& x)
      : selection_(e),
        axes_(window_axes(x.shape(), e.params)),
        ct_(ct),
        x_(padded(x, axes_, selection_.neutral())) {
    for (const WindowAxis& a : axes_) cover_.emplace_back(a);
  }

  Array run() {
    // Where windows neither overlap nor leave gaps at the ends, each element of the result looks
    // through its window by itself: nothing is stored in between.
    constexpr std::int64_t few_taps = 16;
    if (overlap() || taps_of(axes_) > few_taps) {
      chosen_ =
          windows_for(chosen([&](const Ints& tap) { return tap_of(x_, axes_, tap); }), none());
    }
    ct_ = windows_for(ct_, 0);
    Arrays parts;
    const Cover& last = cover_.back();
    constexpr std::int64_t few_residues = 8;
    // Innermost loops of few residues would waste vectors: each residue gets its own strided part.
    const std::int64_t step = last.stride <= few_residues ? 1 : last.stride;
    for (std::int64_t r = 0; r < last.stride; r += step) parts.push_back(total({r, step}));
    return operand_part(parts.size() == 1 ? parts[0] : concatenate(parts, parts[0].ndim() - 1));
  }

 private:
  struct Residues {  // of the last axis
    std::int64_t first, count;
  };

  bool overlap() const {
    bool any = false;
    for (std::size_t d = 0; d < axes_.size(); ++d) {
      any |= cover_[d].reach > 1 || cover_[d].first + cover_[d].quotients > axes_[d].out();
    }
    return any;
  }

  // ------------------------------------------------------------------------------ taps as numbers
  // Residues of all axes as one number, then the distances j; fits a byte for all usual windows.
  std::int64_t residues() const {
    return std::accumulate(cover_.begin(), cover_.end(), std::int64_t{1},
                           [](std::int64_t n, const Cover& c) { return n * c.stride; });
  }
  std::int64_t distances() const {
    return std::accumulate(cover_.begin(), cover_.end(), std::int64_t{1},
                           [](std::int64_t n, const Cover& c) { return n * c.reach; });
  }
  double none() const { return static_cast<double>(residues() * distances()); }
  Dtype number_dtype() const {
    return none() <= std::numeric_limits<std::uint8_t>::max() ? Dtype::u8 : Dtype::i32;
  }
  std::int64_t number_of(const Ints& distance, const Ints& residue) const {
    std::int64_t r = 0, j = 0;
    for (std::size_t d = 0; d < cover_.size(); ++d) {
      r = r * cover_[d].stride + residue[d];
      j = j * cover_[d].reach + distance[d];
    }
    return j * residues() + r;
  }
  Array number(const Shape& shape, std::int64_t value) const {
    return filled(shape, make_literal(number_dtype(), static_cast<double>(value)));
  }
  // The number of the tap that each window selects; element(tap): its value in every window.
  template <class F>
  Array chosen(const F& element) const {
    std::optional<Array> extreme, which;
    for_each_index(window_sizes(axes_), [&](const Ints& tap) {
      Ints distance, residue;
      for (std::size_t d = 0; d < tap.size(); ++d) {
        distance.push_back(tap[d] / cover_[d].stride);
        residue.push_back(tap[d] % cover_[d].stride);
      }
      const Array candidate = element(tap);
      const Array here = number(candidate.shape(), number_of(distance, residue));
      if (!extreme) {
        extreme = candidate;
        which = here;
        return;
      }
      const Array kept = selection_.keeps.bind1({*extreme, candidate});
      which = select_n(kept, {here, *which});
      extreme = select_n(kept, {candidate, *extreme});
    });
    return *which;
  }

  // ------------------------------------------------------------------------------------- covering
  // One value per window, for the windows first - (reach - 1) .. first + quotients - 1 of each
  // axis.
  Array windows_for(const Array& w, double filling) const {
    std::vector<PadDimension> config;
    Ints start, limit;
    bool pads = false;
    for (std::size_t d = 0; d < cover_.size(); ++d) {
      const std::int64_t begin = cover_[d].first - (cover_[d].reach - 1),
                         end = cover_[d].first + cover_[d].quotients;
      const std::int64_t low = std::max<std::int64_t>(0, -begin),
                         high =
                             std::max<std::int64_t>(0, end - w.shape(static_cast<std::int64_t>(d)));
      config.push_back({low, high, 0});
      pads |= low != 0 || high != 0;
      start.push_back(begin + low);
      limit.push_back(end + low);
    }
    const Array whole = pads ? pad(w, const_like(w, filling), config) : w;
    return slice(whole, start, limit);
  }
  Shape domain(const Residues& r) const {
    Shape shape;
    for (const Cover& c : cover_) {
      shape.push_back(c.quotients);
      shape.push_back(c.stride);
    }
    shape.back() = r.count;
    return shape;
  }
  // The windows at these distances, for each quotient and residue.
  Array spread(const Array& w, const Ints& distance, const Residues& r) const {
    Ints start, limit, dims;
    for (std::size_t d = 0; d < cover_.size(); ++d) {
      start.push_back(cover_[d].reach - 1 - distance[d]);
      limit.push_back(start[d] + cover_[d].quotients);
      dims.push_back(static_cast<std::int64_t>(2 * d));
    }
    return broadcast_in_dim(slice(w, start, limit), domain(r), dims);
  }
  Array residue_numbers(const Residues& r) const {
    Shape strides;
    Ints start, dims;
    for (std::size_t d = 0; d < cover_.size(); ++d) {
      strides.push_back(cover_[d].stride);
      start.push_back(0);
      dims.push_back(static_cast<std::int64_t>(2 * d + 1));
    }
    const Array all = reshape(iota(number_dtype(), {residues()}, 0), strides);
    Ints limit = strides;
    start.back() = r.first;
    limit.back() = r.first + r.count;
    return broadcast_in_dim(slice(all, start, limit), domain(r), dims);
  }

  // The sum over the windows that a position lies in, in their order, beginning with 0.
  Array total(const Residues& r) const {
    const Shape shape = domain(r);
    const Dtype sum_dtype = itemsize(ct_.dtype()) == 2 ? Dtype::f32 : ct_.dtype();
    const Array nothing = full_like({sum_dtype, shape}, 0), residue = residue_numbers(r);
    Array sum = nothing;
    Ints reach;
    for (const Cover& c : cover_) reach.push_back(c.reach);
    for_each_index(reach, [&](const Ints& window) {
      Ints distance;
      for (std::size_t d = 0; d < window.size(); ++d) distance.push_back(reach[d] - 1 - window[d]);
      const std::int64_t base = number_of(distance, Ints(distance.size(), 0));
      const Array here = base == 0 ? residue : add(residue, number(shape, base));
      const Array selected = eq(chosen_for(distance, r), here);
      sum = add(sum, select_n(selected, {nothing, convert(spread(ct_, distance, r), sum_dtype)}));
    });
    return convert(sum, ct_.dtype());
  }
  Array chosen_for(const Ints& distance, const Residues& r) const {
    if (chosen_) return spread(*chosen_, distance, r);
    return chosen([&](const Ints& tap) {
      return spread(windows_for(tap_of(x_, axes_, tap), 0), distance, r);
    });
  }
  // [quotients, residues] of each axis as positions, those of the operand.
  Array operand_part(const Array& covered) const {
    Shape positions;
    Ints start, limit;
    for (std::size_t d = 0; d < cover_.size(); ++d) {
      positions.push_back(cover_[d].quotients * cover_[d].stride);
      start.push_back(cover_[d].start);
      limit.push_back(cover_[d].start + axes_[d].in);
    }
    return slice(reshape(covered, positions), start, limit);
  }

  Selection selection_;
  WindowAxes axes_;
  Array ct_, x_;
  std::vector<Cover> cover_;
  std::optional<Array> chosen_;  // the tap of each window, where it is stored
};

bool can_scatter(const Type& x, const WindowAxes& axes) {
  constexpr std::int64_t most_numbers = 1 << 20;
  std::int64_t numbers = 1, reads = 1;
  for (const WindowAxis& a : axes) {
    const Cover c(a);
    numbers = std::min(most_numbers + 1, numbers * std::min(most_numbers, c.stride * c.reach));
    reads = std::min(most_taps + 1, reads * std::min(most_taps + 1, c.reach));
  }
  const bool no_holes = std::all_of(axes.begin(), axes.end(),
                                    [](const WindowAxis& a) { return a.window_dilation == 1; });
  return can_select(x, axes) && no_holes && numbers <= most_numbers && reads <= most_taps;
}

}  // namespace

FlatFunction window_expansion(const Equation& e, const std::vector<Type>& in, const Type& out) {
  if (out.size() == 0 || in.back().size() == 0) return nullptr;
  if (step_of(e) != nullptr) {
    const WindowAxes axes = window_axes(in[0].shape, e.params);
    if (!is_floating(in[0].dtype) || !has_no_cuts(axes) || taps_of(axes) > most_taps)
      return nullptr;
    return [&](const Arrays& x) { return Arrays{reduced(x[0], e)}; };
  }
  if (e.prim == &select_and_gather_add_p && can_select(in[1], window_axes(in[1].shape, e.params))) {
    return [&](const Arrays& x) { return Arrays{gathered(x[0], x[1], e)}; };
  }
  if (e.prim == &select_and_scatter_add_p && in[0].size() > 0 &&
      can_scatter(in[1], window_axes(in[1].shape, e.params))) {
    return [&](const Arrays& x) { return Arrays{Scatter(e, x[0], x[1]).run()}; };
  }
  // The evaluator sums in the result's place, so halves get a place of wider numbers.
  if (e.prim == &select_and_scatter_add_p && itemsize(out.dtype) == 2) {
    return [&](const Arrays& x) {
      const Array ct = convert(x[0], Dtype::f32);
      const Array by = convert(x[1], Dtype::f32);
      return Arrays{convert(select_and_scatter_add_p.bind1({ct, by}, e.params), out.dtype)};
    };
  }
  return nullptr;
}

}  // namespace reprise::plan
