#include "plan/group.h"

#include "base/dtype.h"
#include "base/work.h"

#include <algorithm>
#include <numeric>

namespace reprise::plan {
namespace {

// The loops of a row: the index of its first one.
std::size_t row_begin(const Ints& domain, std::int64_t row) {
  std::size_t k = domain.size();
  for (std::int64_t n = 1; n < row;) n *= domain[--k];
  return k;
}

// One stride serves all loops from `begin` on.
bool collapses(const Ints& domain, const Ints& strides, std::size_t begin) {
  for (std::size_t k = domain.size(); k-- > begin + 1;) {
    if (strides[k - 1] != strides[k] * domain[k]) return false;
  }
  return true;
}

// Nothing changes along the loops from `begin` on.
bool constant_from(const Ints& strides, std::size_t begin) {
  return std::all_of(strides.begin() + static_cast<std::ptrdiff_t>(begin), strides.end(),
                     [](std::int64_t s) { return s == 0; });
}

// Rows from `begin` on walk with one stride, and bounds of them are bounds of their one loop.
bool row_collapses(const Ints& domain, const Ints& strides, const std::vector<Bound>& bounds,
                   std::size_t begin) {
  return collapses(domain, strides, begin) &&
         std::all_of(bounds.begin(), bounds.end(), [&](const Bound& b) { return b.loop <= begin; });
}

// Of every loop, which `domain` refines: the first of the loops that it becomes, and their number.
std::vector<std::pair<std::size_t, std::size_t>> loops_in(const Ints& sizes, const Ints& domain) {
  std::vector<std::pair<std::size_t, std::size_t>> out(sizes.size(), {0, 0});
  std::size_t k = domain.size();
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const std::size_t end = k;
    for (std::int64_t inner = 1; inner < sizes[d]; inner *= domain[k]) --k;
    out[d] = {k, end - k};
  }
  return out;
}
std::optional<std::vector<Bound>> refined_bounds(
    const std::vector<Bound>& bounds, const std::vector<std::pair<std::size_t, std::size_t>>& now) {
  std::vector<Bound> out;
  for (const Bound& b : bounds) {
    if (now[b.loop].second != 1) return std::nullopt;
    out.push_back({now[b.loop].first, b.begin, b.end});
  }
  return out;
}

std::size_t what_is_read(Source source, Var root, std::int64_t offset, const Literal& number) {
  std::size_t h = static_cast<std::size_t>(root);
  for (const auto part :
       {static_cast<std::size_t>(offset), static_cast<std::size_t>(number.natural),
        static_cast<std::size_t>(source)}) {
    h = h * 1000003 + part;
  }
  return h;
}

}  // namespace

std::int64_t Kernel::size() const {
  return std::accumulate(domain.begin(), domain.end(), std::int64_t{1}, std::multiplies<>());
}

bool Group::is_per_row(const Shape& shape) const {
  const std::int64_t n = element_count(shape);
  return kernel_.row > 1 && n != kernel_.size() && n == kernel_.rows();
}

Ints Group::strides_over(const View& v) const {
  if (!is_per_row(v.shape)) return refined_strides(v.strides, v.shape, kernel_.domain);
  const std::size_t begin = row_begin(kernel_.domain, kernel_.row);
  const Ints outer(kernel_.domain.begin(),
                   kernel_.domain.begin() + static_cast<std::ptrdiff_t>(begin));
  Ints out = refined_strides(v.strides, v.shape, outer);
  out.resize(kernel_.domain.size(), 0);
  return out;
}

Ints Group::canonical_strides(bool per_row) const {
  Ints out = row_major_strides(kernel_.domain);
  if (!per_row) return out;
  const std::size_t begin = row_begin(kernel_.domain, kernel_.row);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = k < begin ? out[k] / kernel_.row : 0;
  return out;
}

bool Group::refine(const Ints& domain) {
  if (domain == kernel_.domain) return true;
  const auto now = loops_in(kernel_.domain, domain);
  std::vector<std::vector<Bound>> bounds;
  for (const Load& l : kernel_.loads) {
    auto refined = refined_bounds(l.bounds, now);
    if (!refined) return false;
    bounds.push_back(std::move(*refined));
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    Load& l = kernel_.loads[i];
    l.bounds = std::move(bounds[i]);
    l.strides = refined_strides(l.strides, kernel_.domain, domain);
  }
  for (Store& s : kernel_.stores) s.strides = refined_strides(s.strides, kernel_.domain, domain);
  kernel_.domain = domain;
  return true;
}

bool Group::accept(const Shape& shape) {
  Ints wanted = domain_of(shape);
  if (is_per_row(shape)) wanted.push_back(kernel_.row);
  const auto common = common_domain(kernel_.domain, wanted);
  return common && refine(*common);
}

bool Group::set_row(std::int64_t row) {
  if (kernel_.row == row) return true;
  if (kernel_.row != 0) return false;
  const auto common = common_domain(kernel_.domain, domain_of({kernel_.size() / row, row}));
  if (!common) return false;
  const std::size_t begin = row_begin(*common, row);
  const auto now = loops_in(kernel_.domain, *common);
  for (const Load& l : kernel_.loads) {
    const auto bounds = refined_bounds(l.bounds, now);
    const Ints strides = refined_strides(l.strides, kernel_.domain, *common);
    if (!bounds || !row_collapses(*common, strides, *bounds, begin)) return false;
  }
  for (const Store& s : kernel_.stores) {
    if (!collapses(*common, refined_strides(s.strides, kernel_.domain, *common), begin))
      return false;
  }
  refine(*common);
  kernel_.row = row;
  for (Node& node : kernel_.nodes) {
    if (node.kind == NodeKind::load)
      node.per_row = kernel_.loads[node.load].bounds.empty() &&
                     constant_from(kernel_.loads[node.load].strides, begin);
  }
  return true;
}

bool Group::can_reduce(bool along_row) const {
  return kernel_.row < wide_row ||
         !(along_row ? kernel_.has_column_reduce : kernel_.has_row_reduce);
}

bool Group::set_segments(std::int64_t segments) {
  if (kernel_.has_column_reduce && kernel_.segments != segments) return false;
  kernel_.segments = segments;
  kernel_.has_column_reduce = true;
  return true;
}

std::size_t Group::load(const Operand& x, const Ints& strides, const std::vector<Bound>& bounds) {
  const auto [first, last] =
      load_nodes_.equal_range(what_is_read(x.source, x.view.root, x.view.offset, x.number));
  for (auto it = first; it != last; ++it) {
    const std::size_t n = it->second;
    const Load& l = kernel_.loads[kernel_.nodes[n].load];
    if (l.source == x.source && l.dtype == x.dtype && l.root == x.view.root &&
        l.offset == x.view.offset && l.strides == strides && l.number == x.number &&
        l.bounds == bounds) {
      return n;
    }
  }
  kernel_.loads.push_back(
      {x.source, x.dtype, x.view.offset, strides, x.number, x.view.root, bounds});
  Node node;
  node.kind = NodeKind::load;
  node.load = kernel_.loads.size() - 1;
  node.type = Type{x.dtype, {}};
  if (kernel_.row > 0 && bounds.empty()) {
    const std::size_t begin = row_begin(kernel_.domain, kernel_.row);
    node.per_row = constant_from(strides, begin);
  }
  kernel_.nodes.push_back(std::move(node));
  remember_load(kernel_.nodes.size() - 1);
  return kernel_.nodes.size() - 1;
}

void Group::remember_load(std::size_t node) {
  const Load& l = kernel_.loads[kernel_.nodes[node].load];
  load_nodes_.emplace(what_is_read(l.source, l.root, l.offset, l.number), node);
}

std::optional<std::vector<Bound>> Group::bounds_over(const Piece& piece, const Shape& shape) const {
  std::vector<Bound> bounds;
  for (std::size_t d = 0; d < piece.begin.size(); ++d) {
    const bool is_all = piece.begin[d] == 0 && piece.end[d] == shape[d];
    if (!is_all) bounds.push_back({d, piece.begin[d], piece.end[d]});
  }
  return refined_bounds(bounds, loops_in(shape, kernel_.domain));
}

bool Group::can_read_pieces(const Operand& x, const Shape& shape) const {
  if (x.view.shape != shape || is_per_row(shape)) return false;
  return std::all_of(x.pieces->begin(), x.pieces->end(), [&](const Piece& piece) {
    if (piece.source == Source::memory && node_of_.contains(piece.view.root)) return false;
    const auto bounds = bounds_over(piece, shape);
    if (!bounds || kernel_.row == 0) return bounds.has_value();
    const Ints strides = piece.begin.empty()
                             ? Ints(kernel_.domain.size(), 0)
                             : refined_strides(piece.view.strides, shape, kernel_.domain);
    return row_collapses(kernel_.domain, strides, *bounds, row_begin(kernel_.domain, kernel_.row));
  });
}

std::size_t Group::choice(const Operand& x) {
  const auto known = choice_of_.find(x.view.root);
  if (known != choice_of_.end()) return known->second;
  Node node;
  node.kind = NodeKind::choice;
  node.type = Type{x.dtype, {}};
  for (const Piece& piece : *x.pieces) {
    const Ints strides = piece.begin.empty()
                             ? Ints(kernel_.domain.size(), 0)
                             : refined_strides(piece.view.strides, x.view.shape, kernel_.domain);
    const Operand part{piece.view, piece.source, x.dtype, piece.number};
    node.in.push_back(load(part, strides, *bounds_over(piece, x.view.shape)));
  }
  kernel_.nodes.push_back(std::move(node));
  return choice_of_[x.view.root] = kernel_.nodes.size() - 1;
}

bool Group::can_read(const Operand& x, const Shape& shape) const {
  if (x.source == Source::pieces) return can_read_pieces(x, shape);
  const Ints strides = strides_over(broadcast(x.view, shape));
  const auto made = x.source == Source::memory ? node_of_.find(x.view.root) : node_of_.end();
  if (made != node_of_.end()) {
    const Node& node = kernel_.nodes[made->second];
    return node.kind != NodeKind::column_reduce && x.view.offset == 0 &&
           strides == canonical_strides(node.per_row);
  }
  return kernel_.row == 0 ||
         collapses(kernel_.domain, strides, row_begin(kernel_.domain, kernel_.row));
}

std::size_t Group::operand(const Operand& x, const Shape& shape) {
  const auto made = x.source == Source::memory ? node_of_.find(x.view.root) : node_of_.end();
  if (made != node_of_.end()) return made->second;
  if (x.source == Source::pieces) return choice(x);
  return load(x, strides_over(broadcast(x.view, shape)));
}

bool Group::can_store(const View& part) const {
  return kernel_.row == 0 ||
         collapses(kernel_.domain, strides_over(part), row_begin(kernel_.domain, kernel_.row));
}
void Group::store(std::size_t node, Dtype dtype, const View& part) {
  kernel_.stores.push_back(
      {as_elements(node, part.shape), part.root, dtype, part.offset, strides_over(part)});
}
void Group::alias(Var out, const Type& type, std::size_t node) {
  Node same;
  same.in = {node};
  same.type = Type{type.dtype, {}};
  same.per_row = is_per_row(type.shape);
  add(std::move(same), out);
}
std::size_t Group::as_elements(std::size_t node, const Shape& shape) {
  const bool per_row = is_per_row(shape);
  if (kernel_.nodes[node].per_row == per_row) return node;
  Node same;
  same.in = {node};
  same.type = kernel_.nodes[node].type;
  same.per_row = per_row;
  kernel_.nodes.push_back(std::move(same));
  return kernel_.nodes.size() - 1;
}

std::size_t Group::add(Node node, Var out) {
  if (node.kind == NodeKind::row_reduce) kernel_.has_row_reduce = true;
  kernel_.nodes.push_back(std::move(node));
  node_of_[out] = kernel_.nodes.size() - 1;
  return kernel_.nodes.size() - 1;
}

bool Group::has_loops_of(const Group& other) const {
  const Kernel& k = other.kernel_;
  return k.domain == kernel_.domain && k.row == kernel_.row && !k.has_column_reduce &&
         !kernel_.has_column_reduce && !k.has_row_reduce && !kernel_.has_row_reduce;
}

bool Group::merge(const Group& other) {
  if (has_loops_of(other)) {
    append(other);
    return true;
  }
  const Kernel& k = other.kernel_;
  if (k.size() != kernel_.size() || (k.row != 0 && kernel_.row != 0 && k.row != kernel_.row))
    return false;
  if (k.has_column_reduce && kernel_.has_column_reduce && k.segments != kernel_.segments)
    return false;
  Group both = *this;
  const auto common = common_domain(kernel_.domain, k.domain);
  Group theirs = other;
  if (!common || !both.refine(*common) || !theirs.refine(*common)) return false;
  const std::int64_t row = std::max(k.row, kernel_.row);
  if (row != 0 && (!both.set_row(row) || !theirs.set_row(row))) return false;
  if (k.has_column_reduce && !both.set_segments(k.segments)) return false;
  if ((k.has_column_reduce && !both.can_reduce(false)) ||
      (k.has_row_reduce && !both.can_reduce(true)))
    return false;
  both.kernel_.has_row_reduce |= k.has_row_reduce;
  both.append(theirs);
  *this = std::move(both);
  return true;
}

void Group::append(const Group& other) {
  std::vector<std::size_t> moved;
  count_work(other.kernel_.nodes.size());
  for (Node node : other.kernel_.nodes) {
    if (node.kind == NodeKind::load) {
      const Load& l = other.kernel_.loads[node.load];
      moved.push_back(
          load({View{l.root, l.offset, {}, {}}, l.source, l.dtype, l.number}, l.strides, l.bounds));
      continue;
    }
    for (std::size_t& i : node.in) i = moved[i];
    kernel_.nodes.push_back(std::move(node));
    moved.push_back(kernel_.nodes.size() - 1);
  }
  for (const auto& [var, n] : other.node_of_) node_of_[var] = moved[n];
  for (const auto& [var, n] : other.choice_of_) choice_of_.emplace(var, moved[n]);
  for (Store s : other.kernel_.stores) {
    s.node = moved[s.node];
    kernel_.stores.push_back(std::move(s));
  }
}

std::vector<bool> Group::readable_nodes(const std::vector<Var>& stored) const {
  std::vector<bool> readable(kernel_.nodes.size(), false);
  for (Var v : stored)
    readable[node_of_.at(v)] = kernel_.nodes[node_of_.at(v)].kind != NodeKind::column_reduce;
  return readable;
}

bool Group::is_light(Var value, const std::function<bool(Var)>& stays,
                     const std::vector<bool>& is_stored) const {
  constexpr std::size_t few = 16;
  std::vector<std::size_t> queue{node_of_.at(value)}, seen;  // few
  std::size_t operations = 0;
  while (!queue.empty()) {
    const std::size_t n = queue.back();
    queue.pop_back();
    if (is_stored[n] || std::find(seen.begin(), seen.end(), n) != seen.end()) continue;
    seen.push_back(n);
    count_work();
    const Node& node = kernel_.nodes[n];
    if (node.kind == NodeKind::load) {
      const Load& l = kernel_.loads[node.load];
      if (l.source == Source::memory && !stays(l.root)) return false;
      continue;
    }
    const bool is_made_alone = node.kind == NodeKind::op || node.kind == NodeKind::choice;
    if (!is_made_alone || ++operations > few) return false;
    queue.insert(queue.end(), node.in.begin(), node.in.end());
  }
  return true;
}

std::vector<std::size_t> Group::prune(const std::vector<std::size_t>& wanted) {
  constexpr auto gone = static_cast<std::size_t>(-1);
  std::vector<bool> used(kernel_.nodes.size(), false);
  for (std::size_t n : wanted) used[n] = true;
  for (std::size_t n = used.size(); n-- > 0;) {
    for (std::size_t i : kernel_.nodes[n].in) used[i] = used[i] || used[n];
  }
  std::vector<std::size_t> now(used.size(), gone);
  std::vector<Node> nodes;
  std::vector<Load> loads;
  for (std::size_t n = 0; n < used.size(); ++n) {
    if (!used[n]) continue;
    Node node = std::move(kernel_.nodes[n]);
    for (std::size_t& i : node.in) i = now[i];
    if (node.kind == NodeKind::load) {
      loads.push_back(std::move(kernel_.loads[node.load]));
      node.load = loads.size() - 1;
    }
    now[n] = nodes.size();
    nodes.push_back(std::move(node));
  }
  kernel_.nodes = std::move(nodes);
  kernel_.loads = std::move(loads);
  std::erase_if(choice_of_, [&](const auto& choice) { return now[choice.second] == gone; });
  for (auto& [var, n] : choice_of_) n = now[n];
  load_nodes_.clear();
  for (std::size_t n = 0; n < kernel_.nodes.size(); ++n) {
    if (kernel_.nodes[n].kind == NodeKind::load) remember_load(n);
  }
  auto any = [&](NodeKind kind) {
    return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(),
                       [&](const Node& n) { return n.kind == kind; });
  };
  kernel_.has_row_reduce = any(NodeKind::row_reduce);
  kernel_.has_column_reduce = any(NodeKind::column_reduce);
  return now;
}

Group Group::only(const std::vector<Var>& values, const std::vector<Var>& stored) const {
  Group part = *this;
  for (Var v : stored) {
    Node& node = part.kernel_.nodes[node_of_.at(v)];
    if (node.kind == NodeKind::column_reduce) continue;
    part.kernel_.loads.push_back(
        {Source::memory, node.type.dtype, 0, canonical_strides(node.per_row), {}, v});
    Node read;
    read.kind = NodeKind::load;
    read.load = part.kernel_.loads.size() - 1;
    read.type = Type{node.type.dtype, {}};
    read.per_row = node.per_row;
    node = std::move(read);
  }
  part.kernel_.stores.clear();
  part.node_of_.clear();
  std::vector<std::size_t> wanted;
  for (Var v : values) wanted.push_back(node_of_.at(v));
  const std::vector<std::size_t> now = part.prune(wanted);
  for (Var v : values) part.node_of_[v] = now[node_of_.at(v)];
  return part;
}

Kernel Group::finish(const std::vector<std::pair<Var, Type>>& stored) && {
  for (const auto& [root, type] : stored) {
    const std::size_t n = node_of_.at(root);
    const Node& node = kernel_.nodes[n];
    const bool columns = node.kind == NodeKind::column_reduce;
    kernel_.stores.push_back(
        {n, root, type.dtype, 0, columns ? Ints{} : canonical_strides(node.per_row)});
  }
  std::vector<std::size_t> wanted;
  for (const Store& s : kernel_.stores) wanted.push_back(s.node);
  const std::vector<std::size_t> now = prune(wanted);
  for (Store& s : kernel_.stores) s.node = now[s.node];
  return std::move(kernel_);
}

}  // namespace reprise::plan
