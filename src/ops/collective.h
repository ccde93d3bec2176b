// Collectives: what all ranks along axes of a mesh compute together.
//
//   pvary:            a       -> a{V:x}       psum_invariant: a{V:x} -> a,  transposes of each other
//   all_gather:       a{V:x}  -> a[n]{V:x}    reduce_scatter: back,         transposes of each other
//   ppermute, all_to_all: a{V:x} -> a{V:x},   transposes of themselves, the other way round
#pragma once

#include "base/mesh.h"
#include "program/primitive.h"

namespace reprise {

// Axes of a mesh, printed as ('x',) or, where JAX does, as x.
struct AxesParam : OpaqueParam {
  explicit AxesParam(AxisList l, bool bare = false) : list(std::move(l)), is_bare(bare) {}
  AxisList list;
  bool is_bare;
  std::string text() const override;
  bool equal(const OpaqueParam& other) const override;
};
const AxisList& axes_of(const Params& collective);

// The mesh whose axes have names in the function being traced; null: none.
MeshPtr current_mesh();
class InMesh {
 public:
  explicit InMesh(MeshPtr mesh);
  ~InMesh();
  InMesh(const InMesh&) = delete;
  InMesh& operator=(const InMesh&) = delete;

 private:
  MeshPtr outer_;
};

// all_gather whose result is the same on all ranks of the axes, and its part of one rank.
Array gathered(const Array& x, const AxisList& axes, std::int64_t dimension);
Array own_part(const Array& x, const AxisList& axes, std::int64_t dimension);

// Bytes that a rank gets from others in a collective.
std::size_t communicated_bytes(const Equation&, const Type& in, const Type& out);

}  // namespace reprise
