// Trees of arrays in files: .safetensors and .npz, as Python's safetensors and numpy read and write
// them.
//
//   rp::io::save_safetensors("model.safetensors", params);        // "params/Dense_0/kernel", ...
//   rp::Dict params = rp::io::load_safetensors("model.safetensors");
//   state = rp::io::load_npz("state.npz", state);                 // into a tree of known structure
//
// A leaf's name is the path of its keys, joined by "/" as flax.traverse_util.flatten_dict(sep="/")
// joins them; set .separator = "." for files of projects that join by dots. Loading splits the
// names again.
//
// Saving is atomic: the file is written beside its place, flushed to the disk and then renamed, so
// that other programs, and whoever comes after a crash, see the old file or the new one. What a
// killed process leaves beside it ("name.tmp-...") is harmless, and the next save of the name
// removes it. Symbolic links are followed; pipes and /dev/stdout get the bytes as they come;
// devices and directories are refused. Loading trusts nothing: a file that is truncated, oversized,
// overlapping, inconsistent or not of this format is a RuntimeError which says what is wrong,
// before memory is taken for it.
//
// All dtypes but PRNG keys (save rp::random::key_data) and float0. bf16 has no name in numpy; like
// ml_dtypes it is written to .npz as V2 (in Python: `.view(ml_dtypes.bfloat16)`), and V2 is read as
// bf16.
#pragma once

#include "reprise/function.h"
#include "reprise/named_leaves.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#pragma GCC visibility push(default)
namespace reprise::io {

using Metadata = std::map<std::string, std::string>;  // notes in a .safetensors file

// How files are read.
struct LoadOptions {
  std::string separator = "/";  // empty: names are not split
  // JAX makes 64-bit numbers of numpy 32-bit ones unless jax_enable_x64 is set. Here a file gives
  // what it holds; one float64 array then makes float64 of everything computed with it, so the
  // first of a file is a warning. true: no warning; false: float64, int64 and uint64 become
  // float32, int32 and uint32 as in JAX.
  std::optional<bool> x64 = std::nullopt;
  // What compressed data may become, as a multiple of the size of the file; 64 MiB are always
  // allowed.
  double max_inflation = 100;
};

// ------------------------------------------------------------------------------------ .safetensors
struct SafetensorsOptions {
  std::string separator = "/";
  Metadata metadata = {};  // notes of your own
};
void save_safetensors(const std::string& path, const NamedLeaves& leaves,
                      const SafetensorsOptions& options = {}, Location at = Location::current());
template <class T>
void save_safetensors(const std::string& path, const T& tree,
                      const SafetensorsOptions& options = {}, Location at = Location::current()) {
  save_safetensors(path, named_leaves(tree), options, at);
}
Dict load_safetensors(const std::string& path, const LoadOptions& options = {},
                      Location at = Location::current());
Metadata load_safetensors_metadata(const std::string& path, Location at = Location::current());

// -------------------------------------------------------------------------------------------- .npz
struct NpzOptions {
  std::string separator = "/";
  bool compressed = false;  // as numpy.savez_compressed
};
void save_npz(const std::string& path, const NamedLeaves& leaves, const NpzOptions& options = {},
              Location at = Location::current());
template <class T>
void save_npz(const std::string& path, const T& tree, const NpzOptions& options = {},
              Location at = Location::current()) {
  save_npz(path, named_leaves(tree), options, at);
}
Dict load_npz(const std::string& path, const LoadOptions& options = {},
              Location at = Location::current());

// -------------------------------------------------------------------------- into a known structure
namespace detail {
inline LoadOptions checked_later(
    LoadOptions options) {  // dtypes are compared: there is nothing to warn of
  if (!options.x64) options.x64 = true;
  return options;
}
}  // namespace detail

// A tree like `like` with the arrays of the file. A TypeError if one is missing or has another
// type; the file may hold more.
template <class T>
T load_safetensors(const std::string& path, const T& like, const LoadOptions& options = {},
                   Location at = Location::current()) {
  return from_dict(like, load_safetensors(path, detail::checked_later(options), at), at);
}
template <class T>
T load_npz(const std::string& path, const T& like, const LoadOptions& options = {},
           Location at = Location::current()) {
  return from_dict(like, load_npz(path, detail::checked_later(options), at), at);
}

}  // namespace reprise::io
#pragma GCC visibility pop
