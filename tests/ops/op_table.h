// The table of operations: one row says what an operation computes, on what, and what else holds.
// The runner (op_table_run.cpp) checks every row: values against the row's own formula, the
// derivatives against finite differences and against each other, mapping against a loop, and the
// traced, printed and parsed program against the plain call.
//
//   rows.push_back({.name = "square", .f = one(lax::square), .in = {{.shape = {2, 3}}},
//                   .reference = each([](double x) { return x * x; }), .primitive = &square_p});
#pragma once

#include "program/primitive.h"
#include "reprise/lax.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise::op_table {

// Numbers of the reference world: a shape and doubles in row-major order.
struct Numbers {
  Shape shape;
  std::vector<double> values;
  double& at(const Shape& index);
  double at(const Shape& index) const;
};
using Many = std::vector<Numbers>;

std::int64_t count_of(const Shape& shape);
// Calls f(index) for every index, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f);
// The array whose element at each index is f(index).
Numbers tabulate(const Shape& shape, const std::function<double(const Shape&)>& f);
// The fold of the elements along some axes.
Numbers fold(const Numbers& x, const std::vector<std::int64_t>& axes, double start,
             const std::function<double(double, double)>& combine);

// ------------------------------------------------------------------------------------------- rows
enum class Fill : std::uint8_t {
  uniform,   // anywhere in [low, high]
  distinct,  // evenly spaced in [low, high], shuffled: for functions with kinks at ties
};

// One operand. Floats lie in [low, high]; integers are small; `fixed` numbers are used as they are.
struct In {
  Shape shape = {};
  double low = -2, high = 2;
  Fill fill = Fill::uniform;
  std::optional<Dtype> dtype = std::nullopt;  // default: each of the row's dtypes
  std::vector<double> fixed = {};
};

using Function = std::function<Arrays(const Arrays&)>;
using Reference = std::function<Many(const Many&)>;
using Dtypes = std::vector<Dtype>;

inline const Dtypes floats = {float64, float32, float16, bfloat16};
inline const Dtypes integers = {int64, int32, int16, int8, uint64, uint32, uint16, uint8};
inline const Dtypes numbers = {float64, float32, float16, bfloat16, int64,  int32,
                               int16,   int8,    uint64,  uint32,   uint16, uint8};
inline const Dtypes bits = {int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool_};
inline const Dtypes everything = {float64, float32, float16, bfloat16, int64, int32, int16,
                                  int8,    uint64,  uint32,  uint16,   uint8, bool_};

enum class Derivative : std::uint8_t {
  smooth,  // all checks
  first,   // the second derivative is not defined by a rule
  none,    // results do not depend on floats, or the operation has no derivative
};

struct Row {
  std::string name;
  Function f;
  std::vector<In> in;
  Reference reference;
  const Primitive* primitive = nullptr;  // the one that the row is about; its program contains it
  Dtypes dtypes = floats;
  Derivative derivative = Derivative::smooth;
  double ulps = 4;  // tolerance of values, in units of the dtype's rounding error
  // Other shapes of the operands for which everything must hold too: rank 0, nothing inside.
  std::vector<std::vector<Shape>> variants = {};
  bool maps = true;  // false: the batch rule cannot give each slice's own result
};
using Rows = std::vector<Row>;

// Shapes of k equal operands: a scalar and two empty arrays.
std::vector<std::vector<Shape>> scalar_and_empty(std::size_t k = 1);
std::vector<std::vector<Shape>> only_empty(std::size_t k = 1);

// -------------------------------------------------------------------------------- short forms of f
inline Function one(Array (*f)(Operand)) {
  return [f](const Arrays& x) { return Arrays{f(x[0])}; };
}
inline Function two(Array (*f)(Operand, Operand)) {
  return [f](const Arrays& x) { return Arrays{f(x[0], x[1])}; };
}
// References of elementwise functions.
Reference each(double (*f)(double));
Reference each(double (*f)(double, double));

// The families, one file each.
Rows unary_rows();    // op_table_unary.cpp
Rows binary_rows();   // op_table_binary.cpp
Rows convert_rows();  // op_table_convert.cpp
Rows shape_rows();    // op_table_shape.cpp
Rows join_rows();     // op_table_join.cpp
Rows index_rows();    // op_table_index.cpp
Rows reduce_rows();   // op_table_reduce.cpp
Rows window_rows();   // op_table_window.cpp
Rows product_rows();  // op_table_product.cpp
Rows random_rows();   // op_table_random.cpp
Rows text_rows();     // op_table_texts.cpp
Rows numpy_rows();    // op_table_numpy.cpp
Rows nn_rows();       // op_table_nn.cpp

// Runs every check of a row; failures name the row.
void check_row(const Row& row);
void check_integer_edges();  // op_table_integer.cpp

}  // namespace reprise::op_table
