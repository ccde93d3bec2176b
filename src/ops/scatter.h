// What other rules need to record scatter equations.
#pragma once

#include "ops/lax.h"
#include "program/primitive.h"

#include <string>
#include <string_view>

namespace reprise {

struct ScatterNumbers final : OpaqueParam {
  explicit ScatterNumbers(lax::ScatterDimensionNumbers n) : numbers(std::move(n)) {}
  std::string text() const override;  // ScatterDimensionNumbers(update_window_dims=(0,), ...)
  lax::ScatterDimensionNumbers numbers;
};
// The inverse of text(); throws TypeError.
lax::ScatterDimensionNumbers parse_scatter_numbers(std::string_view text);

// The gather that reads what the scatter writes.
lax::GatherDimensionNumbers inverse(const lax::ScatterDimensionNumbers&);
Ints slice_sizes_of(const lax::ScatterDimensionNumbers&, std::int64_t operand_ndim,
                    const Shape& updates);

// { lambda ; a b. let c = combine a b in (c,) }: one object per primitive, dtype and use, as in
// JAX, where transposition makes its own. The printer shares equal objects.
enum class UpdateUse : std::uint8_t { forward, transposed };
ProgramPtr update_program(const Primitive& combine, Dtype dtype, UpdateUse use);

// `update` is null for the plain scatter.
Params scatter_params(const ProgramPtr& update, const lax::ScatterDimensionNumbers& numbers,
                      const lax::ScatterOptions& options);

}  // namespace reprise
