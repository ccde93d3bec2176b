// The arrays of a tree by name: how optimiser states and files speak of the leaves of any tree.
//
//   rp::NamedLeaves leaves = rp::named_leaves(params);  // paths {"params", "Dense_0", "kernel"}
//   rp::Dict same = rp::to_dict(leaves);                // {"params": {"Dense_0": {"kernel": w}}}
//   auto back = rp::from_dict(params, same);            // the structure of params, arrays of same
//
// Keys of maps and Dicts, and names of fields, stand for themselves; positions for their number.
#pragma once

#include "reprise/function.h"

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

using KeyPath = std::vector<std::string>;  // the keys from the root of a tree to a leaf
struct NamedLeaves {
  std::vector<KeyPath> paths;  // of a tree that is one Array: the empty path
  Arrays values;
};

std::string path_text(const KeyPath& path);         // "params/Dense_0/kernel"
Dict to_dict(const NamedLeaves& leaves);            // a TypeError for the empty path
const Array& leaf_at(const Dict&, const KeyPath&);  // a TypeError if there is none

namespace tree {

std::string key_of_path(const std::string& path);  // "['w']" -> "w", "[0]" -> "0", ".b" -> "b"

template <class T>
void name_leaves(const T& t, const KeyPath& prefix, NamedLeaves& out) {
  if constexpr (is_leaf<T>) {
    out.paths.push_back(prefix);
    out.values.push_back(t);
  } else if constexpr (!is_static<T>) {
    each_child(t, [&](const auto& child, const auto& path) {
      KeyPath longer = prefix;
      const std::string text = path();
      if (!text.empty()) longer.push_back(key_of_path(text));
      name_leaves(child, longer, out);
    });
  }
}

}  // namespace tree

// The arrays of a tree with their paths, in the order of tree_leaves.
template <class T>
NamedLeaves named_leaves(const T& tree) {
  NamedLeaves out;
  tree::name_leaves(tree, {}, out);
  return out;
}

Arrays leaves_of_dict(const NamedLeaves& like, const Dict& dict, Location at);  // for from_dict
// A copy of `like` with the arrays that the Dict has under the same names; a TypeError if one is
// missing or has another type. Further entries of the Dict are not looked at.
template <class T>
T from_dict(const T& like, const Dict& dict, Location at = Location::current()) {
  return tree_unflatten(like, leaves_of_dict(named_leaves(like), dict, at));
}

}  // namespace reprise
#pragma GCC visibility pop
