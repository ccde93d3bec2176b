// Meshes: ranks in a grid whose axes have names, and sets of axes. Both exist once per process and
// are never freed, so that types compare them by address.
#pragma once

#include "reprise/array.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise {

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

// Rank numbers grow fastest along the last axis.
struct MeshGrid {
  std::vector<MeshAxis> axes;
  bool is_abstract = false;  // for plans only: nothing can run on it
  bool operator==(const MeshGrid&) const = default;
  std::int64_t size() const;
  int find(const std::string& name) const;  // -1: no axis has this name
  std::string text() const;                 // Mesh('x': 4, axis_types=(Auto,))
};
using MeshPtr = const MeshGrid*;
MeshPtr the_mesh(const MeshGrid&);

// Some axes of a mesh as bits, the first axis the lowest.
struct MeshAxes {
  MeshPtr mesh = nullptr;
  std::uint64_t bits = 0;
};
const MeshAxes* axes_of(MeshPtr mesh, std::uint64_t bits);  // null: none
inline std::uint64_t bits_of(const MeshAxes* axes) { return axes == nullptr ? 0 : axes->bits; }
// All axes of both; of two different meshes it is a TypeError.
const MeshAxes* united(const MeshAxes*, const MeshAxes*);
std::string to_string(const MeshAxes*);  // "{V:x}", "{V:(data,model)}", ""

// Axes in the order in which a collective counts ranks, the last one fastest.
struct AxisList {
  MeshPtr mesh = nullptr;
  std::vector<int> axes;
  bool operator==(const AxisList&) const = default;
  std::uint64_t bits() const;
  std::int64_t size() const;
  std::string text() const;  // ('x',)
  // The number of a rank among those that differ from it along these axes only.
  std::int64_t position_of(std::int64_t rank) const;
  // Those ranks, in order.
  std::vector<std::int64_t> group_of(std::int64_t rank) const;
};

}  // namespace reprise
