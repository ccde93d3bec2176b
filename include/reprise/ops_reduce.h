// Reductions, cumulative operations, sorting and products, in numpy style with the names of
// jax.numpy.
//
//   rp::sum(x);                     // of all elements
//   rp::mean(x, -1, true);          // of the last axis, which stays with size 1
//   rp::max(x, {0, 2});             // over two axes
//   rp::einsum("bij,bjk->bik", a, b);
//
// Axes count from 0; negative ones from the end. An axis out of range or named twice is a
// TypeError.
#pragma once

#include "reprise/array.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// sum(x, (1, 2)) is C++ for sum(x, 2). No type can tell them apart, but compilers warn about the
// lost number; g++ does so only when asked.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic warning "-Wunused-value"
#endif

#pragma GCC visibility push(default)
namespace reprise {

// The axes of a reduction: one, several ({1, 2}), or (by default) all.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  ReduceAxes(std::nullopt_t) {}  // NOLINT: implicit by design, here and below
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  ReduceAxes(T axis) : axes_(std::in_place, 1, static_cast<std::int64_t>(axis)) {}  // NOLINT
  ReduceAxes(std::initializer_list<std::int64_t> axes) : axes_(axes) {}             // NOLINT
  ReduceAxes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}            // NOLINT
  const std::optional<std::vector<std::int64_t>>& axes() const { return axes_; }

 private:
  std::optional<std::vector<std::int64_t>> axes_;
};

// ------------------------------------------------------------------------------------- reductions
// With keepdims the reduced axes stay, with size 1. Sums and products of small integers and of bool
// are i32 (u32 for unsigned ones); those of f16 and bf16 are computed in f32. Sums of f32 are
// computed pairwise. An empty sum is 0, an empty product 1, an empty mean NaN.
Array sum(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array prod(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array mean(Operand x, ReduceAxes axis = {}, bool keepdims = false);  // of integers: f32
// The mean squared distance from the mean; the divisor is the number of elements minus ddof.
Array var(Operand x, ReduceAxes axis = {}, bool keepdims = false, std::int64_t ddof = 0);
Array std_(Operand x, ReduceAxes axis = {}, bool keepdims = false, std::int64_t ddof = 0);
// NaN wins. Reducing an empty axis is a TypeError. Ties share the derivative evenly.
Array max(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array min(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array amax(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array amin(Operand x, ReduceAxes axis = {}, bool keepdims = false);
// Of elements that are not zero.
Array any(Operand x, ReduceAxes axis = {}, bool keepdims = false);
Array all(Operand x, ReduceAxes axis = {}, bool keepdims = false);
// The first position of the extreme, or of the first NaN, as i32; without an axis in x as one row.
Array argmax(Operand x, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);
Array argmin(Operand x, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);
// log(sum(exp(x))) without overflow.
Array logsumexp(Operand x, ReduceAxes axis = {}, bool keepdims = false);

// ------------------------------------------------------------------------------------- cumulative
// Without an axis x is taken as one row.
Array cumsum(Operand x, std::optional<std::int64_t> axis = std::nullopt);
Array cumprod(Operand x, std::optional<std::int64_t> axis = std::nullopt);
Array cummax(Operand x, std::int64_t axis = 0);
Array cummin(Operand x, std::int64_t axis = 0);

// ---------------------------------------------------------------------------------------- sorting
// Stable, NaN last; nullopt as axis takes x as one row.
Array sort(Operand x, std::optional<std::int64_t> axis = -1, bool descending = false);
// The positions (i32) that sort x.
Array argsort(Operand x, std::optional<std::int64_t> axis = -1, bool descending = false);
// The k largest elements of the last axis, largest first, and their positions (i32).
std::pair<Array, Array> top_k(Operand x, std::int64_t k);

// --------------------------------------------------------------------------------------- products
// Operands may have different dtypes; the result has the promoted one, unless another is preferred.
// f16 and bf16 products are summed in f32.

// The sum of products over the last axis of a and the last but one of b (the only one of a vector).
Array dot(Operand a, Operand b, std::optional<Dtype> preferred_element_type = std::nullopt);
// The same for matrices and vectors; leading axes are batches and broadcast.
Array matmul(Operand a, Operand b, std::optional<Dtype> preferred_element_type = std::nullopt);
// Over the last `axes` axes of a and the first of b, or over pairs of given axes.
Array tensordot(Operand a, Operand b, std::int64_t axes = 2);
Array tensordot(Operand a, Operand b, const std::vector<std::int64_t>& a_axes,
                const std::vector<std::int64_t>& b_axes);
Array inner(Operand a, Operand b);  // over the last axes
Array vdot(Operand a, Operand b);   // of both as one row
Array outer(Operand a, Operand b);  // all products of two rows

// Sums of products by letters: einsum("ij,jk->ik", a, b) is matmul(a, b). Letters missing on the
// right are summed; without "->" the result has the letters that stand once, in alphabetical order;
// "..." stands for further axes, which broadcast. Any number of operands; they are multiplied in
// pairs, in the cheapest order.
Array einsum(std::string_view subscripts, const Arrays& operands,
             Location at = Location::current());
Array einsum(std::string_view subscripts, Operand a);
Array einsum(std::string_view subscripts, Operand a, Operand b);
Array einsum(std::string_view subscripts, Operand a, Operand b, Operand c);
Array einsum(std::string_view subscripts, Operand a, Operand b, Operand c, Operand d);

}  // namespace reprise
#pragma GCC visibility pop
