// A fused kernel: loops over a domain, one expression graph inside.
//
//   for each row r (all loops but those of the row):
//     passes over the row's columns: elementwise nodes, reductions along the row
//     nodes that have one value per row, computed between the passes
//   reductions over the rows are accumulated beside and finished when all rows are done
#pragma once

#include "plan/view.h"

#include <optional>
#include <string>
#include <vector>

namespace reprise::plan {

inline constexpr std::size_t few_pointers = 16;  // of a kernel that runs without allocating memory

// Where a value that a kernel reads comes from.
enum class Source : std::uint8_t {
  memory,  // an operand: element at offset + sum of index * stride
  index,   // the number offset + sum of index * stride itself (iota and views of it)
  number,  // one literal
  pieces,  // several of the above side by side: an operand's only, kernels choose between loads
};

// Of one loop of a domain: its indices from begin to end, without end.
struct Bound {
  std::size_t loop = 0;
  std::int64_t begin = 0, end = 0;
  bool operator==(const Bound&) const = default;
};

struct Load {
  Source source = Source::memory;
  Dtype dtype = Dtype::f32;
  std::int64_t offset = 0;  // memory: part of the operand's address, not of the code
  Ints strides;             // per loop of the domain
  Literal number;
  Var root = -1;  // memory: whose storage
  // Nothing is read outside of these, and indices count from their begins; at most one of a loop.
  std::vector<Bound> bounds = {};
};

// choice: at every element the first of its operands, all of them loads, whose bounds hold there.
enum class NodeKind : std::uint8_t { load, choice, op, row_reduce, column_reduce };

struct Node {
  NodeKind kind = NodeKind::op;
  std::size_t load = 0;           // of NodeKind::load
  const Equation* eqn = nullptr;  // of the others; an op without one copies its operand
  std::vector<std::size_t> in;    // nodes
  std::vector<Type> in_types;     // as the equation has them
  Type type;
  bool per_row = false;  // one value for each row, not for each element
};

struct Store {
  std::size_t node = 0;
  Var root = -1;
  Dtype dtype = Dtype::f32;
  std::int64_t offset = 0;  // part of the address, not of the code
  Ints strides;             // over the domain. A column reduction has none: its result is dense
};

struct Kernel {
  Ints domain;           // outermost first, no loop of size 1
  std::int64_t row = 0;  // elements of a row: a product of innermost loops; 0: any split will do
  // column reductions: rows are [segments, rows / segments], each summed alone
  std::int64_t segments = 1;
  bool has_row_reduce = false, has_column_reduce = false;
  std::vector<Load> loads;
  std::vector<Node> nodes;
  std::vector<Store> stores;

  std::int64_t size() const;
  std::int64_t rows() const { return row == 0 ? 1 : size() / row; }
  bool has_bounds() const;  // of any load
};

// Rows this long are reduced over the rows in blocks of columns, all rows each: not by a kernel
// that reduces along rows too.
inline constexpr std::int64_t wide_row = 16384;

// Per node: the number of reductions along the row that must be complete before it.
std::vector<std::size_t> stages_of(const Kernel&);

// One value is copied to another, both in the same order.
bool is_copy(const Kernel&);

// What an operation does, operands left out.
std::string operation_key(const Node&);

// Equal keys: the same code (roots and addresses left out).
std::string key_of(const Kernel&);

}  // namespace reprise::plan
