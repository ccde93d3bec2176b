// Strided views: shape equations that cost nothing because readers walk with other strides.
#pragma once

#include "program/program.h"

#include <optional>

namespace reprise::plan {

// Element (i, j, ...) stands at offset + i * strides[0] + j * strides[1] + ... of the root's
// storage.
struct View {
  Var root = -1;
  std::int64_t offset = 0;  // in elements, as the strides
  Shape shape;
  Ints strides;
  bool operator==(const View&) const = default;
};

View dense_view(Var root, const Shape& shape);
bool is_dense(const View&);  // row-major without gaps, from the first element

// The view of a shape equation's output number k, given that of its operand; nullopt: it is no view
// (other primitives, and reshapes whose elements do not stand at regular distances).
std::optional<View> view_of(const Equation& e, std::size_t k, const View& operand, const Type& out);

std::optional<View> reshaped(const View&, const Shape&);
// trailing dimensions aligned, size 1 and rank 0 stretched
View broadcast(const View&, const Shape&);

// ------------------------------------------------------------------------------ loop domains
// A domain is a list of loop sizes, none 1, outermost first.
Ints domain_of(const Shape&);
// The coarsest domain whose loops can be grouped to those of both; nullopt: there is none.
std::optional<Ints> common_domain(const Ints& a, const Ints& b);
// Strides over the loops of `domain`, which refines `sizes` (strides go with `sizes`).
Ints refined_strides(const Ints& strides, const Ints& sizes, const Ints& domain);

}  // namespace reprise::plan
