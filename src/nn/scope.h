// Scopes: where a module's variables and keys come from.
//
//   Frame    the variables of one init or apply, or of the inside of one lifted call
//   Scope    a place in a frame: a path, the random streams, and how many keys were drawn there
//
// A key depends on the root key of its stream, the names pushed since that root, and the number of
// keys drawn at that place before: fold_in(root, first word of SHA-1(names, number)).
#pragma once

#include "reprise/errors.h"
#include "reprise/nn_module.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace reprise::nn::detail {

using Path = std::vector<std::string>;

// How many keys each stream gave, here and below. The inside of a lifted call counts on with the
// counters of its outside.
struct Counters {
  std::map<std::string, std::uint32_t> drawn;
  std::map<std::string, std::shared_ptr<Counters>> children;

  Counters copy() const;
  void restore(const Counters& earlier);  // objects that scopes hold stay the same
};

struct Frame {
  Dict variables;  // collection -> path -> name
  Filter mutable_ = false;
  bool initializing = false;
  bool captures_calls = false;  // store the result of each call in "intermediates"
  bool is_open = true;          // closed when its init, apply or lifted call has ended
  std::size_t depth = 0;        // of lifted calls
};

struct Scope {
  std::shared_ptr<Frame> frame;
  Path path;                             // in the variables
  Path debug_path;                       // the same with the lifts around it: remat(block)
  std::map<std::string, Array> streams;  // root keys
  Path suffix;                           // names pushed since the root keys were made
  std::shared_ptr<Counters> counters;

  std::shared_ptr<Scope> push(const std::string& name) const;
  std::string text() const;  // "/Dense_0", for messages

  const Dict* find(const std::string& collection) const;  // null if there is nothing here
  bool has_variable(const std::string& collection, const std::string& name) const;
  // The value, which must be there.
  const Array& get(const std::string& collection, const std::string& name) const;
  void put(const std::string& collection, const std::string& name, Dict::Node value);
  bool is_mutable(const std::string& collection) const {
    return frame->mutable_.matches(collection);
  }
  // Throws what a missing variable means; `made` says what was asked for.
  [[noreturn]] void missing(const std::string& what, const std::string& collection,
                            const std::string& name) const;

  bool has_stream(const std::string& stream) const { return streams.count(stream) != 0; }
  Array make_rng(const std::string& stream);

 private:
  void check_usable(const char* op) const;
};
using ScopePtr = std::shared_ptr<Scope>;

// The depth of lifted calls on this thread; frames of lower depth are read-only.
std::size_t& lift_depth();

// ----------------------------------------------------------------------------- nested dictionaries
// The dictionary at a path, null if it is not there (or is an array).
const Dict* dict_at(const Dict& tree, const Path& path);
Dict& make_dict_at(Dict& tree, const Path& path);
// Joins trees; where both have an array, that of b counts.
void merge_into(Dict& a, const Dict& b);

}  // namespace reprise::nn::detail
