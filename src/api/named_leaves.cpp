#include "reprise/named_leaves.h"

#include "reprise/errors.h"

namespace reprise {

std::string path_text(const KeyPath& path) { return join(path, "/"); }

Dict to_dict(const NamedLeaves& leaves) {
  Dict out;
  for (std::size_t i = 0; i < leaves.paths.size(); ++i) {
    const KeyPath& path = leaves.paths[i];
    if (path.empty())
      fail<TypeError>("to_dict: a single array has no name, got ", leaves.values[i].type());
    Dict* at = &out;
    for (std::size_t k = 0; k + 1 < path.size(); ++k) at = &at->nested(path[k]);
    (*at)[path.back()] = leaves.values[i];
  }
  return out;
}

const Array& leaf_at(const Dict& dict, const KeyPath& path) {
  const Dict* at = &dict;
  for (std::size_t k = 0; k < path.size(); ++k) {
    const auto found = at->items().find(path[k]);
    if (found == at->items().end()) break;
    if (k + 1 < path.size()) {
      at = std::get_if<Dict>(&found->second);
      if (at == nullptr) break;
    } else if (const auto* leaf = std::get_if<Array>(&found->second)) {
      return *leaf;
    }
  }
  fail<TypeError>("dict: no array with this name, got '", path_text(path), "'");
}

Arrays leaves_of_dict(const NamedLeaves& like, const Dict& dict, Location at) {
  const AtUser scope(at);
  Arrays out;
  for (std::size_t i = 0; i < like.paths.size(); ++i) {
    const Array& found = leaf_at(dict, like.paths[i]);
    const Array& wanted = like.values[i];
    if (wanted.dtype() != found.dtype() || wanted.shape() != found.shape()) {
      fail<TypeError>("from_dict: the types of '", path_text(like.paths[i]), "' differ, got ",
                      found.type(), " for ", wanted.type());
    }
    out.push_back(found);
  }
  return out;
}

namespace tree {

std::string key_of_path(const std::string& path) {
  if (path.size() >= 4 && path[0] == '[' && path[1] == '\'') return path.substr(2, path.size() - 4);
  if (path.size() >= 2 && path[0] == '[') return path.substr(1, path.size() - 2);
  return path.substr(1);
}

}  // namespace tree

}  // namespace reprise
