// Trees that are divided among ranks in files: a folder with one .safetensors file for each rank and
// an index. What was saved on four ranks may be loaded on two, or by one.
//
//   rp::io::save_sharded("checkpoint", params, mesh, P("data"));
//   params = rp::io::load_sharded("checkpoint", params, other_mesh, P("model"));
//
// All ranks call these together. Saving is atomic over all of them: the files are written to a
// folder beside, and only when every rank has written its own does the folder take the name. If one
// fails, all throw, and what was there before stays.
#pragma once

#include "reprise/named_leaves.h"
#include "reprise/shard_map.h"

#include <string>

#pragma GCC visibility push(default)
namespace reprise::io {

namespace detail {
void save_sharded(const std::string& folder, const NamedLeaves& leaves, const Mesh& mesh,
                  const Specs& specs, Location at);
Arrays load_sharded(const std::string& folder, const NamedLeaves& like, const Mesh& mesh,
                    const Specs& specs, Location at);
}  // namespace detail

// The arrays of a tree: parts that ranks have, divided by the specs, or whole ones, of which each
// rank writes its part. What several ranks have alike is written by the first of them.
template <class T>
void save_sharded(const std::string& folder, const T& tree, const Mesh& mesh, const Specs& specs,
                  Location at = Location::current()) {
  detail::save_sharded(folder, named_leaves(tree), mesh, specs, at);
}
// A tree like `like`, of which only the structure is looked at, with this rank's parts of the arrays
// of the folder, as the specs divide them: P() gives whole ones. Specs of saving and loading need
// not agree.
template <class T>
T load_sharded(const std::string& folder, const T& like, const Mesh& mesh, const Specs& specs,
               Location at = Location::current()) {
  return tree_unflatten(like, detail::load_sharded(folder, named_leaves(like), mesh, specs, at));
}

}  // namespace reprise::io
#pragma GCC visibility pop
