#include "plan/expand.h"

#include "base/dtype.h"
#include "ops/random.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "plan/dot.h"
#include "plan/expand_window.h"
#include "plan/reduction.h"
#include "program/trace.h"
#include "transform/rewrite.h"

#include <algorithm>
#include <limits>

namespace reprise::plan {
namespace {

using namespace lax;  // NOLINT: expansions read like formulas

constexpr std::int64_t worth_a_kernel = 256;  // elements: fewer are evaluated as they are

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

// -------------------------------------------------------------------------------------- positions
bool is_expandable_position(const Equation& e, const Type& x) {
  if (e.prim != &argmax_p && e.prim != &argmin_p) return false;
  const std::int64_t n = x.shape[static_cast<std::size_t>(e.params.get<Ints>("axes")[0])];
  return x.size() >= worth_a_kernel && n > 1;
}

// The smallest of `index` where x is NaN, or the extreme if there is no NaN; both along one axis.
// Also the extreme.
struct Extreme {
  Array value, index;
};
Extreme first_extreme(const Equation& e, const Array& x, const Array& index, std::int64_t axis) {
  const Array value = e.prim == &argmax_p ? reduce_max(x, {axis}) : reduce_min(x, {axis});
  const Array everywhere = broadcast_in_dim(value, x.shape(), other_axes(x.ndim(), {axis}));
  Array chosen = eq(x, everywhere);
  if (is_floating(x.dtype())) chosen = bitwise_or(chosen, ne(x, x));
  const double none =
      index.dtype() == Dtype::i32 ? std::numeric_limits<std::int32_t>::max() : 0x1p62;
  const Array otherwise = filled(x.shape(), make_literal(index.dtype(), none));
  return {value, reduce_min(select_n(chosen, {otherwise, index}), {axis})};
}

// Long rows are searched in parts that threads can share, then the parts' extremes.
Array position(const Array& x, const Equation& e) {
  const std::int64_t axis = e.params.get<Ints>("axes")[0];
  const std::int64_t n = x.shape(axis);
  const Dtype counts = n <= std::numeric_limits<std::int32_t>::max() ? Dtype::i32 : Dtype::i64;
  Array index = iota(counts, x.shape(), axis), values = x;
  const bool is_row = element_count({x.shape().begin() + axis + 1, x.shape().end()}) == 1;
  const std::int64_t part = is_row && n > long_row ? divisor_near(n, long_row / 4) : n;
  if (part < n) {
    Shape parts = x.shape();
    parts[static_cast<std::size_t>(axis)] = n / part;
    parts.insert(parts.begin() + axis + 1, part);
    const Extreme found = first_extreme(e, reshape(x, parts), reshape(index, parts), axis + 1);
    values = found.value;
    index = found.index;
  }
  return convert(first_extreme(e, values, index, axis).index, e.params.get<Dtype>("index_dtype"));
}

// --------------------------------------------------------------------------------------- products
// Products are compiled of operands of one dtype; sums are those of the evaluator, and integers
// wrap alike in the result's.
Dtype product_dtype(const Types& in, Dtype out) {
  const Dtype all[] = {in[0].dtype, in[1].dtype, out};
  if (std::find(std::begin(all), std::end(all), Dtype::f64) != std::end(all)) return Dtype::f64;
  if (std::any_of(std::begin(all), std::end(all), is_floating)) return Dtype::f32;
  return out == Dtype::bool_ ? Dtype::u64 : out;
}
Array product(const Arrays& x, const Equation& e, const Type& out) {
  if (x[0].size() == 0 || x[1].size() == 0) return filled(out.shape, make_literal(out.dtype, 0));
  const Dtype dtype = product_dtype({x[0].type(), x[1].type()}, out.dtype);
  const Array lhs = convert(x[0], dtype);
  const Array rhs = convert(x[1], dtype);
  return convert(dot_general_p.bind1({lhs, rhs}, e.params.with("preferred_element_type", dtype)),
                 out.dtype, out.weak_type);
}

// -------------------------------------------------------------------------------------- the pass
FlatFunction expansion_of(const Equation& e, const Types& in, const Type& out) {
  if (in.size() == 1 && is_expandable_draw(e, in[0], out))
    return [&](const Arrays& x) { return Arrays{draw(x[0], out)}; };
  if (in.size() == 1 && is_expandable_position(e, in[0]))
    return [&](const Arrays& x) { return Arrays{position(x[0], e)}; };
  if (e.prim == &dot_general_p && out.size() > 0 && !is_compiled_product(in[0], in[1], out)) {
    return [&](const Arrays& x) { return Arrays{product(x, e, out)}; };
  }
  if (e.prim == &permuted_reshape_p || e.prim == &polynomial_p)
    return [&](const Arrays& x) { return e.prim->eval(x, e.params, {out}); };
  if (std::max(in[0].size(), out.size()) >= worth_a_kernel) return window_expansion(e, in, out);
  return nullptr;
}

}  // namespace

Program expand(const Program& p) { return replace_by_formulas(p, "expand", expand, expansion_of); }

}  // namespace reprise::plan
