// A kernel that is still growing.
#pragma once

#include "plan/kernel.h"

#include <functional>
#include <unordered_map>

namespace reprise::plan {

// Part of a value that is read where it stands.
struct Piece {
  View view;
  Source source = Source::memory;
  Literal number;
  Ints begin, end;  // per dimension of the value; none: all that pieces before it leave
  bool operator==(const Piece&) const = default;
};

// A value as an operand of a kernel: where it is stored or how it is computed.
struct Operand {
  View view;
  Source source = Source::memory;
  Dtype dtype = Dtype::f32;
  Literal number;
  const std::vector<Piece>* pieces = nullptr;  // of Source::pieces
};

class Group {
 public:
  explicit Group(const Ints& domain) { kernel_.domain = domain; }

  const Kernel& kernel() const { return kernel_; }

  // Whether an operand, stretched to `shape`, can be read inside this kernel: made here at the same
  // place of the loops, or stored. operand() is its node then.
  bool can_read(const Operand&, const Shape& shape) const;
  std::size_t operand(const Operand&, const Shape& shape);

  // Makes the loops fine enough for values of this shape; false: this kernel cannot hold them.
  bool accept(const Shape& shape);
  // The innermost loops of `row` elements become the row; false: loads or earlier rows forbid it.
  bool set_row(std::int64_t row);
  bool set_segments(std::int64_t segments);
  // beside the reductions that are there, without changing the order of a sum
  bool can_reduce(bool along_row) const;
  // Takes over the nodes of another group; false (and nothing changed): the loops do not fit.
  bool merge(const Group& other);
  // Merging changes no loop of either, and takes time by the size of the other.
  bool has_loops_of(const Group& other) const;

  std::size_t add(Node node, Var out);
  // A node as elements of `shape`: a value per row that is wanted for each element gets a node for
  // that.
  std::size_t as_elements(std::size_t node, const Shape& shape);
  void alias(Var out, const Type& type, std::size_t node);  // the same elements under another name
  // Writes a node's elements to part of a value that several kernels make.
  bool can_store(const View& part) const;
  void store(std::size_t node, Dtype dtype, const View& part);
  // values of this shape stand for rows, not for elements
  bool is_per_row(const Shape& shape) const;
  const std::unordered_map<Var, std::size_t>& values() const { return node_of_; }

  // A value that is made by few elementwise operations from memory that `stays` and from values
  // that are `stored`: it can be made again.
  bool is_light(Var value, const std::function<bool(Var)>& stays,
                const std::vector<bool>& is_stored) const;
  // Of every node: it can be read once these are stored.
  std::vector<bool> readable_nodes(const std::vector<Var>& stored) const;
  void forget(Var value) { node_of_.erase(value); }  // it is not made here any more
  // The part of this group that makes these values, and nothing else; stored ones are read.
  Group only(const std::vector<Var>& values, const std::vector<Var>& stored) const;

  // The finished kernel, storing these values (root, type); what they do not need is gone.
  Kernel finish(const std::vector<std::pair<Var, Type>>& stored) &&;

 private:
  void append(const Group& other);
  void remember_load(std::size_t node);
  bool refine(const Ints& domain);  // false (and nothing changed): it cuts a loop with bounds
  bool can_read_pieces(const Operand& x, const Shape& shape) const;
  std::size_t choice(const Operand& x);
  // Bounds of a piece as those of loops; nullopt: a bounded dimension is not one loop.
  std::optional<std::vector<Bound>> bounds_over(const Piece& piece, const Shape& shape) const;
  Ints strides_over(const View& v) const;      // over the domain
  Ints canonical_strides(bool per_row) const;  // of a value made here
  std::size_t load(const Operand& x, const Ints& strides, const std::vector<Bound>& bounds = {});
  // Drops nodes and loads that these nodes do not need; where each node is now.
  std::vector<std::size_t> prune(const std::vector<std::size_t>& wanted);

  Kernel kernel_;
  std::unordered_map<Var, std::size_t> node_of_;
  std::unordered_multimap<std::size_t, std::size_t>
      load_nodes_;                                  // by what is read, strides left out
  std::unordered_map<Var, std::size_t> choice_of_;  // of values that are read in pieces
};

}  // namespace reprise::plan
