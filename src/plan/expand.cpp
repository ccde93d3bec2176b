#include "plan/expand.h"

#include <algorithm>
#include <limits>

#include "base/dtype.h"
#include "ops/random.h"
#include "ops/records.h"
#include "ops/window.h"
#include "program/trace.h"
#include "transform/rewrite.h"

namespace reprise::plan {
namespace {

using namespace lax;  // NOLINT: expansions read like formulas

constexpr std::int64_t worth_a_kernel = 256;  // elements: fewer are evaluated as they are
constexpr std::int64_t most_taps = 64;        // elements of a window, each read by itself

// ------------------------------------------------------------------------------------------ draws
bool is_expandable_draw(const Equation& e, const Type& keys, const Type& out) {
  return e.prim == &random_bits_p && out.size() >= worth_a_kernel && itemsize(out.dtype) <= 4 &&
         out.size() / keys.size() <= std::numeric_limits<std::uint32_t>::max();
}

// One of the two words of every key, as large as the result.
Array key_word(const Array& words, std::int64_t which, const Shape& shape) {
  Ints first(words.shape().size(), 0), limit(words.shape());
  first.back() = which;
  limit.back() = which + 1;
  const Array word = squeeze(slice(words, first, limit), {words.ndim() - 1});
  return broadcast_in_dim(word, shape, iota_ints(word.ndim()));
}

Array draw(const Array& keys, const Type& out) {
  const Array words = random_unwrap(keys);
  const Array k0 = key_word(words, 0, out.shape), k1 = key_word(words, 1, out.shape);
  const Shape each(out.shape.begin() + keys.ndim(), out.shape.end());
  const Array flat = iota(Dtype::u32, Shape{out.size() / keys.size()}, 0);
  Ints last;
  for (std::int64_t d = keys.ndim(); d < out.ndim(); ++d) last.push_back(d);
  const Array position = broadcast_in_dim(reshape(flat, each), out.shape, last);
  return convert(threefry_bits(k0, k1, position), out.dtype);
}

// ---------------------------------------------------------------------------------------- windows
const Primitive* step_of(const Equation& e) {
  if (e.prim == &reduce_window_max_p) return &max_p;
  if (e.prim == &reduce_window_min_p) return &min_p;
  return e.prim == &reduce_window_sum_p ? &add_p : nullptr;
}

bool is_expandable_window(const Equation& e, const Type& x, const Type& out) {
  if (step_of(e) == nullptr || out.size() < worth_a_kernel || !is_floating(x.dtype)) return false;
  std::int64_t taps = 1;
  for (std::int64_t w : e.params.get<Ints>("window_dimensions")) taps *= std::min(w, most_taps + 1);
  const auto& padding = e.params.get<std::vector<Ints>>("padding");
  return taps <= most_taps &&
         std::all_of(padding.begin(), padding.end(), [](const Ints& p) { return p[0] >= 0 && p[1] >= 0; });
}

// Some programs in text form leave out dilations of 1.
Ints dilation_of(const Equation& e, const char* key) {
  const Attr* given = e.params.find(key);
  const Ints* values = given == nullptr ? nullptr : std::get_if<Ints>(given);
  return values == nullptr ? Ints(e.params.get<Ints>("window_dimensions").size(), 1) : *values;
}

// The operand with its holes and borders filled by what does not change the result.
Array padded(const Array& x, const Equation& e) {
  const auto& padding = e.params.get<std::vector<Ints>>("padding");
  const Ints holes = dilation_of(e, "base_dilation");
  std::vector<PadDimension> config;
  bool changes = false;
  for (std::size_t d = 0; d < padding.size(); ++d) {
    config.push_back({padding[d][0], padding[d][1], holes[d] - 1});
    changes |= padding[d][0] != 0 || padding[d][1] != 0 || holes[d] != 1;
  }
  if (!changes) return x;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double neutral = e.prim == &reduce_window_sum_p ? 0 : e.prim == &reduce_window_max_p ? -infinity : infinity;
  return pad(x, const_like(x, neutral), config);
}

// The window's elements in row-major order, each for all windows at once.
Array reduce_window(const Array& x, const Equation& e, const Shape& out) {
  const Array whole = padded(x, e);
  const auto& window = e.params.get<Ints>("window_dimensions");
  const auto& strides = e.params.get<Ints>("window_strides");
  const Ints dilation = dilation_of(e, "window_dilation");
  std::optional<Array> result;
  Ints tap(window.size(), 0);
  for (bool more = true; more;) {
    Ints first(tap.size()), limit(tap.size());
    for (std::size_t d = 0; d < tap.size(); ++d) {
      first[d] = tap[d] * dilation[d];
      limit[d] = first[d] + (out[d] - 1) * strides[d] + 1;
    }
    const Array element = slice(whole, first, limit, strides);
    result = result ? step_of(e)->bind1({*result, element}) : element;
    more = false;
    for (std::size_t d = tap.size(); d-- > 0 && !more;) {
      more = ++tap[d] < window[d];
      if (!more) tap[d] = 0;
    }
  }
  return *result;
}

// -------------------------------------------------------------------------------------- the pass
FlatFunction expansion_of(const Equation& e, const Type& in, const Type& out) {
  if (is_expandable_draw(e, in, out)) return [&](const Arrays& x) { return Arrays{draw(x[0], out)}; };
  if (is_expandable_window(e, in, out)) return [&](const Arrays& x) { return Arrays{reduce_window(x[0], e, out.shape)}; };
  return nullptr;
}

}  // namespace

Program expand(const Program& p) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, "expand", expand);
    const bool is_unary = e.in.size() == 1 && e.in[0].is_var() && e.out.size() == 1;
    const FlatFunction f = is_unary ? expansion_of(e, p.type(e.in[0]), p.type(e.out[0])) : nullptr;
    if (!f) {
      rewrite.append(std::move(now));
      continue;
    }
    const AtEquation at(e.at);
    const Traced traced = trace(f, {p.type(e.in[0])}, {.transform = "expand", .body = true});
    rewrite.replace(e.out[0], rewrite.splice(*traced.program, now.in, e.phase)[0]);
  }
  return rewrite.finish();
}

}  // namespace reprise::plan
