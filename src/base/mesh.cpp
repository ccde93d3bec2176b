#include "base/mesh.h"

#include "base/error.h"

#include <deque>
#include <mutex>

namespace reprise {
namespace {

std::vector<std::int64_t> place_of(const MeshGrid& mesh, std::int64_t rank) {
  std::vector<std::int64_t> place(mesh.axes.size());
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    place[i] = rank % mesh.axes[i].size;
    rank /= mesh.axes[i].size;
  }
  return place;
}
std::int64_t rank_at(const MeshGrid& mesh, const std::vector<std::int64_t>& place) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < place.size(); ++i) rank = rank * mesh.axes[i].size + place[i];
  return rank;
}

}  // namespace

std::int64_t MeshGrid::size() const {
  std::int64_t n = 1;
  for (const MeshAxis& a : axes) n *= a.size;
  return n;
}
int MeshGrid::find(const std::string& name) const {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == name) return static_cast<int>(i);
  }
  return -1;
}
std::string MeshGrid::text() const {
  std::vector<std::string> sizes, kinds;
  for (const MeshAxis& a : axes) {
    sizes.push_back(str("'", a.name, "': ", a.size));
    kinds.emplace_back("Auto");
  }
  return str(is_abstract ? "AbstractMesh(" : "Mesh(", join(sizes, ", "), ", axis_types=(",
             join(kinds, ", "), kinds.size() == 1 ? ",))" : "))");
}

MeshPtr the_mesh(const MeshGrid& wanted) {
  static std::mutex mutex;
  static std::deque<MeshGrid>& all = *new std::deque<MeshGrid>;  // addresses stay
  const std::lock_guard lock(mutex);
  for (const MeshGrid& m : all) {
    if (m == wanted) return &m;
  }
  return &all.emplace_back(wanted);
}

const MeshAxes* axes_of(MeshPtr mesh, std::uint64_t bits) {
  if (bits == 0) return nullptr;
  static std::mutex mutex;
  static std::deque<MeshAxes>& all = *new std::deque<MeshAxes>;
  const std::lock_guard lock(mutex);
  for (const MeshAxes& a : all) {
    if (a.mesh == mesh && a.bits == bits) return &a;
  }
  return &all.emplace_back(MeshAxes{mesh, bits});
}

const MeshAxes* united(const MeshAxes* a, const MeshAxes* b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (a->mesh != b->mesh) {
    fail<TypeError>("shard_map: values of two meshes meet, got ", a->mesh->text(), " and ",
                    b->mesh->text());
  }
  return axes_of(a->mesh, a->bits | b->bits);
}

std::string to_string(const MeshAxes* axes) {
  if (axes == nullptr) return "";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < axes->mesh->axes.size(); ++i) {
    if ((axes->bits >> i & 1u) != 0) names.push_back(axes->mesh->axes[i].name);
  }
  return names.size() == 1 ? "{V:" + names[0] + "}" : "{V:(" + join(names, ",") + ")}";
}

std::uint64_t AxisList::bits() const {
  std::uint64_t all = 0;
  for (int a : axes) all |= std::uint64_t{1} << a;
  return all;
}
std::int64_t AxisList::size() const {
  std::int64_t n = 1;
  for (int a : axes) n *= mesh->axes[static_cast<std::size_t>(a)].size;
  return n;
}
std::string AxisList::text() const {
  std::vector<std::string> names;
  for (int a : axes) names.push_back("'" + mesh->axes[static_cast<std::size_t>(a)].name + "'");
  return "(" + join(names, ", ") + (names.size() == 1 ? ",)" : ")");
}
std::int64_t AxisList::position_of(std::int64_t rank) const {
  const std::vector<std::int64_t> place = place_of(*mesh, rank);
  std::int64_t position = 0;
  for (int a : axes) {
    const auto i = static_cast<std::size_t>(a);
    position = position * mesh->axes[i].size + place[i];
  }
  return position;
}
std::vector<std::int64_t> AxisList::group_of(std::int64_t rank) const {
  std::vector<std::int64_t> place = place_of(*mesh, rank), ranks;
  for (std::int64_t n = 0; n < size(); ++n) {
    std::int64_t rest = n;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto i = static_cast<std::size_t>(axes[k]);
      place[i] = rest % mesh->axes[i].size;
      rest /= mesh->axes[i].size;
    }
    ranks.push_back(rank_at(*mesh, place));
  }
  return ranks;
}

}  // namespace reprise
