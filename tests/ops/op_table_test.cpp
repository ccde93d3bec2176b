#include "ops/op_table.h"

#include "api/primitives.h"

#include <doctest/doctest.h>

#include <set>

namespace reprise::op_table {
namespace {

void check_rows(const Rows& rows) {
  for (const Row& row : rows) check_row(row);
}

TEST_CASE("elementwise functions of one operand keep every rule") { check_rows(unary_rows()); }
TEST_CASE("elementwise functions of several operands keep every rule") {
  check_rows(binary_rows());
}
TEST_CASE("conversions and constants keep every rule") { check_rows(convert_rows()); }
TEST_CASE("rearrangements keep every rule") { check_rows(shape_rows()); }
TEST_CASE("joins and splits keep every rule") { check_rows(join_rows()); }
TEST_CASE("gather, scatter and sort keep every rule") { check_rows(index_rows()); }
TEST_CASE("reductions keep every rule") { check_rows(reduce_rows()); }
TEST_CASE("sliding windows keep every rule") { check_rows(window_rows()); }
TEST_CASE("products and convolutions keep every rule") { check_rows(product_rows()); }
TEST_CASE("keys and random bits keep every rule") { check_rows(random_rows()); }
TEST_CASE("primitives of texts keep every rule") { check_rows(text_rows()); }
TEST_CASE("functions in numpy style keep every rule") { check_rows(numpy_rows()); }
TEST_CASE("activation functions keep every rule") { check_rows(nn_rows()); }
TEST_CASE("integers wrap around and divide by zero as defined") { check_integer_edges(); }

TEST_CASE("every primitive that is neither a call nor an effect has a row") {
  std::set<const Primitive*> covered;
  for (Rows (*family)() : {unary_rows, binary_rows, convert_rows, shape_rows, join_rows, index_rows,
                           reduce_rows, window_rows, product_rows, random_rows, text_rows}) {
    for (const Row& row : family()) covered.insert(row.primitive);
  }
  for (const Primitive* p : all_primitives()) {
    if (p->kind == Kind::call || p->kind == Kind::effect) continue;  // ops/debug_print_test.cpp
    if (p->types_varying) continue;                                  // tests/dist: on a mesh only
    CHECK_MESSAGE(covered.count(p) == 1, "no row for the primitive ", std::string(p->name));
  }
}

TEST_CASE("names of rows are unique, so that a failure says where it is") {
  for (Rows (*family)() :
       {unary_rows, binary_rows, convert_rows, shape_rows, join_rows, index_rows, reduce_rows,
        window_rows, product_rows, random_rows, numpy_rows, nn_rows}) {
    std::set<std::string> names;
    for (const Row& row : family()) CHECK_MESSAGE(names.insert(row.name).second, row.name);
  }
}

}  // namespace
}  // namespace reprise::op_table
