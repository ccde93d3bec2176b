// shard_map[mesh jaxpr in_specs out_specs]: a program on the parts that ranks have of its operands.
#pragma once

#include "base/mesh.h"
#include "program/trace.h"

#include <string>
#include <vector>

namespace reprise {

// Per dimension the axes that divide it, in order. A local value is the rank's own outside, too:
// nothing is cut or put together.
struct ShardSpec {
  std::vector<std::vector<int>> dims;
  bool is_local = false;
  bool operator==(const ShardSpec&) const = default;
  std::uint64_t bits() const;  // of all axes
};
using ShardSpecs = std::vector<ShardSpec>;
std::string to_text(const ShardSpec&, const MeshGrid&);  // P('x', None)

struct SpecsParam : OpaqueParam {
  SpecsParam(ShardSpecs s, MeshPtr m) : specs(std::move(s)), mesh(m) {}
  ShardSpecs specs;
  MeshPtr mesh;
  std::string text() const override;
  bool equal(const OpaqueParam& other) const override;
};
struct MeshParam : OpaqueParam {
  explicit MeshParam(MeshPtr m) : mesh(m) {}
  MeshPtr mesh;
  std::string text() const override { return mesh->text(); }
  bool equal(const OpaqueParam& other) const override {
    return static_cast<const MeshParam&>(other).mesh == mesh;
  }
};

// The part of a whole value that a rank has, and the whole of a part; sizes that do not divide are
// a TypeError about `what`.
Type part_of(const Type& whole, const ShardSpec&, MeshPtr, const std::string& what);
Type whole_of(const Type& part, const ShardSpec&, MeshPtr);
// The same for values, in the current context.
Array cut(const Array& whole, const ShardSpec&, MeshPtr);
Array put_together(const Array& part, const ShardSpec&, MeshPtr);
// Of a value that comes from around the function: its own part, or whole.
ShardSpec spec_of_constant(const Type&);

Arrays bind_shard_map(const ProgramPtr& body, MeshPtr mesh, ShardSpecs in, ShardSpecs out,
                      const Arrays& args);

// The program with each shard_map as a jit call of a program that cuts, computes and puts together.
Program open_shard_maps(const Program&);

}  // namespace reprise
