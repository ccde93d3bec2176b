#include "nn/scope.h"

#include "nn/sha1.h"
#include "reprise/random.h"

#include <cctype>
#include <cstdlib>

namespace reprise::nn {

Filter operator&(const Filter& a, const Filter& b) { return DenyList(DenyList(a) | DenyList(b)); }

Filter operator|(const Filter& a, const Filter& b) {
  if (b.inverted_ && !a.inverted_) return b | a;
  Filter result = a;
  if (a.inverted_ && b.inverted_) {  // all but what both leave out
    result.names_.clear();
    for (const std::string& name : a.names_) {
      if (b.names_.count(name) != 0) result.names_.insert(name);
    }
  } else if (a.inverted_) {
    for (const std::string& name : b.names_) result.names_.erase(name);
  } else {
    result.names_.insert(b.names_.begin(), b.names_.end());
  }
  return result;
}

namespace detail {

std::size_t& lift_depth() {
  thread_local std::size_t depth = 0;
  return depth;
}

// --------------------------------------------------------------------------------------- counters
Counters Counters::copy() const {
  Counters result{drawn, {}};
  for (const auto& [name, child] : children) {
    result.children[name] = std::make_shared<Counters>(child->copy());
  }
  return result;
}

void Counters::restore(const Counters& earlier) {
  drawn = earlier.drawn;
  static const Counters& nothing = *new const Counters;
  for (const auto& [name, child] : children) {
    const auto it = earlier.children.find(name);
    child->restore(it == earlier.children.end() ? nothing : *it->second);
  }
}

// ----------------------------------------------------------------------------- nested dictionaries
const Dict* dict_at(const Dict& tree, const Path& path) {
  const Dict* at = &tree;
  for (const std::string& name : path) {
    const auto it = at->items().find(name);
    if (it == at->items().end()) return nullptr;
    at = std::get_if<Dict>(&it->second);
    if (at == nullptr) return nullptr;
  }
  return at;
}

Dict& make_dict_at(Dict& tree, const Path& path) {
  Dict* at = &tree;
  for (const std::string& name : path) {
    Dict::Node& node = at->items().try_emplace(name, Dict()).first->second;
    if (!std::holds_alternative<Dict>(node)) node = Dict();
    at = &std::get<Dict>(node);
  }
  return *at;
}

void merge_into(Dict& a, const Dict& b) {
  for (const auto& [name, node] : b.items()) {
    const auto [it, is_new] = a.items().try_emplace(name, node);
    if (is_new) continue;
    const Dict* from = std::get_if<Dict>(&node);
    Dict* to = std::get_if<Dict>(&it->second);
    if (from != nullptr && to != nullptr) {
      merge_into(*to, *from);
    } else {
      it->second = node;
    }
  }
}

// ------------------------------------------------------------------------------------------ scopes
ScopePtr Scope::push(const std::string& name) const {
  auto child = std::make_shared<Scope>(*this);
  child->path.push_back(name);
  child->debug_path.push_back(name);
  child->suffix.push_back(name);
  std::shared_ptr<Counters>& counter = counters->children[name];
  if (!counter) counter = std::make_shared<Counters>();
  child->counters = counter;
  return child;
}

std::string Scope::text() const { return "/" + join(debug_path, "/"); }

void Scope::check_usable(const char* op) const {
  if (!frame->is_open) {
    fail_with_hint<TraceError>("use it inside, or bind the variables with bind(variables)", op,
                               ": module ", text(),
                               " is used after the init, apply or lifted call it belongs to");
  }
  if (frame->depth != lift_depth()) {
    fail_with_hint<TraceError>(
        "list the module in REPRISE_SUBMODULES of the lifted module, or make it inside", op,
        ": module ", text(), " belongs to the outside of the lifted call that uses it");
  }
}

const Dict* Scope::find(const std::string& collection) const {
  const auto it = frame->variables.items().find(collection);
  if (it == frame->variables.items().end()) return nullptr;
  const Dict* all = std::get_if<Dict>(&it->second);
  return all == nullptr ? nullptr : dict_at(*all, path);
}

bool Scope::has_variable(const std::string& collection, const std::string& name) const {
  const Dict* here = find(collection);
  return here != nullptr && here->contains(name);
}

const Array& Scope::get(const std::string& collection, const std::string& name) const {
  const Dict* here = find(collection);
  if (here == nullptr || !here->contains(name)) missing("variable", collection, name);
  return here->array(name);
}

void Scope::put(const std::string& collection, const std::string& name, Dict::Node value) {
  check_usable("put_variable");
  if (!is_mutable(collection)) {
    fail_with_hint<TypeError>(str("say apply(variables, nn::mutable_(\"", collection,
                                  "\"), ...) and keep what it returns"),
                              "put_variable: collection \"", collection,
                              "\" is immutable, got a new value for \"", name, "\" in ", text());
  }
  Path whole = {collection};
  whole.insert(whole.end(), path.begin(), path.end());
  make_dict_at(frame->variables, whole).items()[name] = std::move(value);
}

void Scope::missing(const std::string& what, const std::string& collection,
                    const std::string& name) const {
  const auto it = frame->variables.items().find(collection);
  const Dict* all = it == frame->variables.items().end() ? nullptr : std::get_if<Dict>(&it->second);
  if (all == nullptr || all->items().empty()) {
    fail_with_hint<TypeError>(
        str("pass the variables that init returned; inside a lifted module its "
            "variables option must let \"",
            collection, "\" through"),
        what, ": collection \"", collection, "\" is empty, wanted \"", name, "\" in ", text());
  }
  std::vector<std::string> names;
  if (const Dict* here = find(collection)) {
    for (const auto& [key, node] : here->items()) names.push_back(key);
  }
  fail<TypeError>(what, ": no \"", name, "\" in ", text(), " of collection \"", collection,
                  "\", got ",
                  names.empty() ? "nothing there" : "\"" + join(names, "\", \"") + "\"");
}

namespace {

// The variable of the environment that Flax reads too: names of one path cannot run together then.
bool separates_names() {
  const char* value = std::getenv("FLAX_FIX_RNG_SEPARATOR");
  std::string text = value == nullptr ? "" : value;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text == "y" || text == "yes" || text == "t" || text == "true" || text == "on" ||
         text == "1";
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const char byte = static_cast<char>(number >> shift);
    if (byte != 0 || !bytes.empty()) bytes.push_back(byte);
  }
  return bytes;
}

}  // namespace

Array Scope::make_rng(const std::string& stream) {
  const std::string used = has_stream(stream) ? stream : "params";
  if (!has_stream(used)) {
    std::vector<std::string> names;
    for (const auto& [name, key] : streams) names.push_back("\"" + name + "\"");
    fail_with_hint<TypeError>(
        str("give it to init or apply: {.rngs = {{\"", stream,
            "\", key}}}; a lifted module sees the streams its rngs or split_rngs option names"),
        "make_rng: ", path.empty() ? "the module" : path.back(), " needs a key for \"", stream,
        "\", got ", names.empty() ? "no keys" : "keys for " + join(names, ", "));
  }
  check_usable("make_rng");
  const std::uint32_t number = ++counters->drawn[used];
  const std::string separator = separates_names() ? std::string(1, '\0') : "";
  std::string bytes;
  for (const std::string& name : suffix) bytes += separator + name;
  bytes += separator + big_endian(number);
  // The same word as a signed number, which fold_in takes modulo 2^32.
  return random::fold_in(streams.at(used), static_cast<std::int32_t>(sha1(bytes)[0]));
}

}  // namespace detail
}  // namespace reprise::nn
