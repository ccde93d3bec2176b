#include "reprise/nnx/state.h"

#include "reprise/errors.h"

#include <algorithm>

namespace reprise::nnx {

// ------------------------------------------------------------------------------------------ paths
std::string to_string(const Key& key) {
  return key.is_name() ? "'" + key.name() + "'" : std::to_string(key.position());
}
std::string to_string(const Path& path) {
  std::vector<std::string> steps;
  for (const Key& key : path) steps.push_back(to_string(key));
  return "(" + join(steps, ", ") + (steps.size() == 1 ? ",)" : ")");
}
std::string joined(const Path& path, const char* separator) {
  std::vector<std::string> steps;
  for (const Key& key : path)
    steps.push_back(key.is_name() ? key.name() : std::to_string(key.position()));
  return join(steps, separator);
}

// ---------------------------------------------------------------------------------------- filters
namespace {
std::string list_text(const char* name, const std::vector<Filter>& filters) {
  std::vector<std::string> texts;
  for (const Filter& f : filters) texts.push_back(f.str());
  return str(name, "(", join(texts, ", "), ")");
}
}  // namespace

Filter Filter::with_tag(const std::string& tag) {
  return Filter([tag](const Leaf& leaf) { return leaf.tag == tag; }, "WithTag('" + tag + "')");
}
Filter Filter::of_kind(const Kind& kind) {
  return Filter([&kind](const Leaf& leaf) { return leaf.kind != nullptr && leaf.kind->is(kind); },
                "OfType(" + kind.name + ")");
}
Filter::Filter(std::initializer_list<Filter> any) : Filter(Any(any)) {}

Filter Any(std::initializer_list<Filter> filters) {
  const std::vector<Filter> list(filters);
  auto matches = [list](const Leaf& leaf) {
    return std::any_of(list.begin(), list.end(), [&](const Filter& f) { return f(leaf); });
  };
  return Filter(Filter::Predicate(matches), list_text("Any", list));
}
Filter All(std::initializer_list<Filter> filters) {
  const std::vector<Filter> list(filters);
  auto matches = [list](const Leaf& leaf) {
    return std::all_of(list.begin(), list.end(), [&](const Filter& f) { return f(leaf); });
  };
  return Filter(Filter::Predicate(matches), list_text("All", list));
}
Filter Not(const Filter& filter) {
  return Filter([filter](const Leaf& leaf) { return !filter(leaf); }, "Not(" + filter.str() + ")");
}
Filter PathContains(const Key& key) {
  auto matches = [key](const Leaf& leaf) {
    return std::find(leaf.path.begin(), leaf.path.end(), key) != leaf.path.end();
  };
  return Filter(Filter::Predicate(matches), "PathContains(" + to_string(key) + ")");
}
Filter PathIn(std::initializer_list<Path> paths) {
  const std::vector<Path> list(paths);
  auto matches = [list](const Leaf& leaf) {
    return std::find(list.begin(), list.end(), leaf.path) != list.end();
  };
  std::vector<std::string> texts;
  for (const Path& path : list) texts.push_back(to_string(path));
  return Filter(Filter::Predicate(matches), "PathIn(" + join(texts, ", ") + ")");
}
Filter WithTag(const std::string& tag) { return Filter(tag); }
Filter Everything() { return Filter(true); }
Filter Nothing() { return Filter(false); }

// ------------------------------------------------------------------------------------------ State
StateLayout::StateLayout(std::vector<Leaf> leaves) {
  for (Leaf& leaf : leaves) leaf.value = {};
  leaves_ = std::make_shared<const std::vector<Leaf>>(std::move(leaves));
}
const std::vector<Leaf>& StateLayout::leaves() const {
  static const auto& none = *new const std::vector<Leaf>;
  return leaves_ ? *leaves_ : none;
}
StateLayout::operator std::string() const {
  std::string key;
  for (const Leaf& leaf : leaves()) {
    tree::append_bits(key, leaf.path.size());
    for (const Key& step : leaf.path) {
      tree::append_bits(key, step.is_name());
      tree::append_bits(key, step.position());
      tree::append_text(key, step.name());
    }
    tree::append_bits(key, leaf.kind);
    tree::append_text(key, leaf.tag);
  }
  return key;
}

State::State(std::vector<Leaf> leaves) {
  std::sort(leaves.begin(), leaves.end(),
            [](const Leaf& a, const Leaf& b) { return a.path < b.path; });
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (i > 0 && leaves[i].path == leaves[i - 1].path) {
      fail<TypeError>("state: a path may appear once, got ", to_string(leaves[i].path), " twice");
    }
    values_.push_back(leaves[i].value);
  }
  layout_ = StateLayout(std::move(leaves));
}

Leaf State::leaf(std::size_t i) const {
  Leaf leaf = layout_.leaves().at(i);
  leaf.value = values_[i];
  return leaf;
}
std::vector<Leaf> State::leaves() const {
  std::vector<Leaf> all = layout_.leaves();
  for (std::size_t i = 0; i < all.size(); ++i) all[i].value = values_[i];
  return all;
}

namespace {
std::optional<std::size_t> find(const std::vector<Leaf>& leaves, const Path& path) {
  const auto it =
      std::lower_bound(leaves.begin(), leaves.end(), path,
                       [](const Leaf& leaf, const Path& wanted) { return leaf.path < wanted; });
  if (it == leaves.end() || it->path != path) return std::nullopt;
  return static_cast<std::size_t>(it - leaves.begin());
}
[[noreturn]] void no_such_path(const std::vector<Leaf>& leaves, const Path& path) {
  std::vector<std::string> there;
  for (const Leaf& leaf : leaves) {
    if (there.size() == 8) {
      there.push_back("...");
      break;
    }
    there.push_back(to_string(leaf.path));
  }
  fail<TypeError>("state: no such path, got ", to_string(path), " where the paths are ",
                  join(there, ", "));
}
bool starts_with(const Path& path, const Path& prefix) {
  return path.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}
}  // namespace

bool State::contains(const Path& path) const { return find(layout_.leaves(), path).has_value(); }
const Array& State::at(const Path& path, Location at) const {
  const AtUser scope(at);
  const auto i = find(layout_.leaves(), path);
  if (!i) no_such_path(layout_.leaves(), path);
  return values_[*i];
}
void State::set(const Path& path, Array value, Location at) {
  const AtUser scope(at);
  const auto i = find(layout_.leaves(), path);
  if (!i) no_such_path(layout_.leaves(), path);
  values_[*i] = std::move(value);
}

State::View State::View::operator[](const Key& key) const {
  Path longer = path_;
  longer.push_back(key);
  return {*state_, std::move(longer)};
}
State::View::operator State() const {
  std::vector<Leaf> below;
  for (Leaf& leaf : state_->leaves()) {
    if (!starts_with(leaf.path, path_)) continue;
    leaf.path.erase(leaf.path.begin(),
                    leaf.path.begin() + static_cast<std::ptrdiff_t>(path_.size()));
    below.push_back(std::move(leaf));
  }
  if (below.empty()) no_such_path(state_->layout_.leaves(), path_);
  return State(std::move(below));
}

State State::filter(const Filter& filter) const {
  std::vector<Leaf> kept;
  for (Leaf& leaf : leaves()) {
    if (filter(leaf)) kept.push_back(std::move(leaf));
  }
  return State(std::move(kept));
}

void State::reprise_visit(Fields& out) {
  // One flat member per array: its key is the whole path, so that the order is that of this state.
  const std::vector<Leaf>& leaves = layout_.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i) out.add(i, values_[i]);
  out.add("layout", layout_);
}

State merge_state(const std::vector<State>& states) {
  std::vector<Leaf> all;
  for (const State& state : states) {
    for (Leaf& leaf : state.leaves()) all.push_back(std::move(leaf));
  }
  return State(std::move(all));
}

// -------------------------------------------------------------------------------------- pure dict
namespace {
std::string dict_key(const Key& key) {
  return key.is_name() ? key.name() : std::to_string(key.position());
}

std::size_t count_arrays(const reprise::Dict& dict) {
  std::size_t count = 0;
  for (const auto& [key, node] : dict.items()) {
    const auto* inner = std::get_if<reprise::Dict>(&node);
    count += inner == nullptr ? 1 : count_arrays(*inner);
  }
  return count;
}
}  // namespace

NamedLeaves named_leaves(const State& state) {
  NamedLeaves leaves;
  for (const Leaf& leaf : state.leaves()) {
    KeyPath path;
    for (const Key& key : leaf.path) path.push_back(dict_key(key));
    leaves.paths.push_back(std::move(path));
    leaves.values.push_back(leaf.value);
  }
  return leaves;
}

reprise::Dict to_pure_dict(const State& state) {
  reprise::Dict out;
  for (const Leaf& leaf : state.leaves()) {
    reprise::Dict* at = &out;
    for (std::size_t i = 0; i + 1 < leaf.path.size(); ++i) at = &at->nested(dict_key(leaf.path[i]));
    (*at)[dict_key(leaf.path.back())] = leaf.value;
  }
  return out;
}

State replace_by_pure_dict(const State& state, const reprise::Dict& values, Location at) {
  const AtUser scope(at);
  if (count_arrays(values) != state.size()) {
    fail<TypeError>("replace_by_pure_dict: the dictionary must have the arrays of the state, got ",
                    count_arrays(values), " for ", state.size());
  }
  State result = state;
  for (const Leaf& leaf : state.leaves()) {
    const reprise::Dict* dict = &values;
    for (std::size_t i = 0; i + 1 < leaf.path.size(); ++i)
      dict = &dict->dict(dict_key(leaf.path[i]));
    result.set(leaf.path, dict->array(dict_key(leaf.path.back())));
  }
  return result;
}

}  // namespace reprise::nnx
