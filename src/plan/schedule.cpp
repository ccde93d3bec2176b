#include "plan/schedule.h"

#include "base/dtype.h"
#include "base/work.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/while.h"
#include "ops/records.h"
#include "plan/dot.h"
#include "plan/open_groups.h"
#include "plan/pieces.h"
#include "plan/reduction.h"
#include "plan/storage.h"
#include "plan/vector_code.h"

#include <algorithm>
#include <unordered_set>

namespace reprise::plan {
namespace {

constexpr std::size_t max_nodes = 2000;  // of one kernel: compile time grows with it

// Walks the equations in order. Fusable ones join open groups; a group becomes a step when someone
// outside reads it, or when running it now frees more memory than it takes. No open group reads a
// value of another open one, so they may be closed in any order.
class Scheduler {
 public:
  Scheduler(std::shared_ptr<const Program> p, const ScheduleOptions& options)
      : p_(*p), options_(options) {
    out_.program = std::move(p);
    out_.on_host = find_host_values(p_, options.border);
    out_.types = p_.types;
    storage_ = find_storage(p_);
    pending_ = storage_.uses;
    is_argument_.resize(p_.types.size(), false);
    for (Var v : p_.in) is_argument_[at(v)] = true;
  }

  Schedule run() {
    for (std::size_t i = 0; i < p_.eqns.size(); ++i) {
      const Equation& e = p_.eqns[i];
      count_work();
      if (storage_.is_view[i]) continue;
      if (!is_empty(e)) place(e);
      for (const Atom& a : e.in)
        if (a.is_var()) read_all_once(operand(a));
      while (!options_.fuse && !open_.empty()) close(open_.begin());
    }
    collect_outputs();
    return std::move(out_);
  }

 private:
  using Open = OpenGroups::Open;
  using Opens = OpenGroups::Opens;
  using Nodes = std::vector<std::size_t>;

  static bool any_loops(Group&) { return true; }
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }
  const View& view(const Atom& a) const { return storage_.view[at(a.var)]; }
  bool is_empty(const Equation& e) const {
    return !e.out.empty() &&
           std::all_of(e.out.begin(), e.out.end(), [&](Var v) { return p_.type(v).size() == 0; });
  }

  Operand operand(const Atom& a) const {
    if (!a.is_var()) return {View{}, Source::number, a.literal.dtype, a.literal};
    const View& v = view(a);
    static const Origin stored{};  // of a copy that was made here
    const Origin& o = at(v.root) < storage_.origin.size() ? storage_.origin[at(v.root)] : stored;
    return {v, o.source, p_.type(a.var).dtype, o.number, &o.pieces};
  }

  // ---------------------------------------------------------------------------------------- groups
  Open owner(const Operand& x) {
    if (x.source != Source::memory || x.view.root < 0) return open_.end();
    const auto found = owner_.find(x.view.root);
    return found == owner_.end() ? open_.end() : found->second;
  }

  void read_all_once(const Operand& x) {
    if (x.source != Source::pieces) return read_once(x.view.root);
    for (const Operand& piece : stored_parts(x)) read_once(piece.view.root);
  }
  // One of the reads that are to come has come: groups may be worth closing now.
  void read_once(Var root) {
    if (--pending_[at(root)] == 0) open_.have_changed(root);
    if (const auto g = owner_.find(root); g != owner_.end()) open_.has_changed(g->second);
  }

  void close(Open g) {
    std::vector<std::pair<Var, Type>> stored;
    for (const auto& [var, node] : g->values())
      if (pending_[at(var)] > 0) stored.emplace_back(var, out_.types[at(var)]);
    std::sort(stored.begin(), stored.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [var, node] : g->values()) owner_.erase(var);
    for (const Store& s : g->kernel().stores) writers_[s.root].erase(g->serial);
    Group done = open_.take(g);
    if (stored.empty() && done.kernel().stores.empty()) return;
    emit_kernel(std::move(done).finish(stored));
  }
  void emit_kernel(Kernel k) {
    Step s;
    for (const Load& l : k.loads)
      if (l.source == Source::memory) s.reads.push_back(l.root);
    for (const Store& t : k.stores) s.writes.push_back(t.root);
    s.what = std::move(k);
    emit(std::move(s));
  }
  void emit(Step s) {
    for (std::vector<Var>* list : {&s.reads, &s.writes}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    out_.steps.push_back(std::move(s));
  }
  // Neighbours of an element are read: all of the value must be there.
  void finish_pieces(const Operand& x) {
    if (x.source != Source::pieces) return;
    for (const Operand& piece : stored_parts(x)) {
      close_writers(piece.view.root);
      close_if_open(piece);
    }
  }
  void close_if_open(const Operand& x) {
    const Open g = owner(x);
    if (g == open_.end()) return;
    leave_light_values(g, x.view.root);
    close(g);
  }
  // Large values that later readers can make again from memory that is there anyway are not stored
  // with the one that is wanted now: they move to a group of their own.
  void leave_light_values(Open g, Var wanted) {
    constexpr std::size_t large = 256 << 10;
    std::vector<std::pair<std::size_t, Var>> later;  // by node: operands come first
    std::vector<Var> stored, light;
    if (pending_[at(wanted)] > 1) stored.push_back(wanted);
    for (const auto& [var, node] : g->values()) {
      if (var == wanted || pending_[at(var)] == 0) continue;
      if (out_.types[at(var)].nbytes() < large)
        stored.push_back(var);
      else
        later.emplace_back(node, var);
    }
    std::sort(later.begin(), later.end());
    std::vector<bool> readable = g->readable_nodes(stored);
    const auto stays = [&](Var root) { return is_argument_[at(root)] || pending_[at(root)] > 0; };
    for (const auto& [node, var] : later) {
      const bool is_light = g->is_light(var, stays, readable);
      (is_light ? light : stored).push_back(var);
      if (!is_light) readable[node] = g->kernel().nodes[node].kind != NodeKind::column_reduce;
    }
    if (light.empty()) return;
    const Open rest = open_.open(g->only(light, stored));
    for (Var v : light) {
      g->forget(v);
      owner_[v] = rest;
    }
  }
  // Groups that write parts of a value must be done before anyone reads it.
  void close_writers(Var root) {
    const auto found = writers_.find(root);
    while (found != writers_.end() && !found->second.empty()) close(found->second.rbegin()->second);
  }

  // The group that an equation on these operands joins: those that hold them, merged where
  // possible; else one that reads the same memory; else a new one.
  Open group_for(const std::vector<Operand>& xs, const Shape& shape) {
    Open chosen = open_.end();
    for (const Operand& x : xs) {
      const Open g = owner(x);
      if (g == open_.end() || g == chosen) continue;
      if (g->kernel().nodes.size() > max_nodes) {
        close(g);
      } else if (chosen == open_.end()) {
        chosen = g;
      } else if (is_much_larger(*g, *chosen) && g->has_loops_of(*chosen)) {
        take_over(g, chosen);
        chosen = g;
      } else if (chosen->merge(*g)) {
        take_over_values(chosen, g);
      } else {
        const bool keep_new = g->kernel().size() > chosen->kernel().size();
        close(keep_new ? chosen : g);
        if (keep_new) chosen = g;
      }
    }
    if (chosen != open_.end()) return chosen;
    std::vector<Operand> stored;
    for (const Operand& x : xs)
      for (const Operand& part : stored_parts(x)) stored.push_back(part);
    return open_.reader(stored, element_count(shape), max_nodes);
  }
  // A large group does not move into a small one: a sum of many terms would move it for each.
  static bool is_much_larger(const Group& a, const Group& b) {
    return a.kernel().nodes.size() > 64 + 8 * b.kernel().nodes.size();
  }
  void take_over(Open g, Open from) {
    const bool merged = g->merge(*from);
    REPRISE_INVARIANT(merged);
    take_over_values(g, from);
  }
  void take_over_values(Open g, Open from) {  // which it has merged with
    for (const auto& [var, node] : from->values()) owner_[var] = g;
    for (const Store& s : from->kernel().stores) {
      writers_[s.root].erase(from->serial);
      writers_[s.root].emplace(g->serial, g);
    }
    open_.take(from);
    open_.has_grown(g);
  }
  // Adds an equation's value to a group: the one that holds its operands if it can take it, else a
  // new one that reads them. prepare(group): whether its loops fit; add(group, nodes of the
  // operands).
  template <class Prepare, class Add>
  Open join(std::vector<Operand> xs, const Shape& shape, Var out, const Prepare& prepare,
            const Add& add) {
    for (const Operand& x : xs) {
      close_writers(x.view.root);
      finish_pieces(x);
    }
    Open g = group_for(xs, shape);
    auto fits = [&] {
      return g->accept(shape) && prepare(*g) &&
             std::all_of(xs.begin(), xs.end(),
                         [&](const Operand& x) { return g->can_read(x, shape); });
    };
    if (g == open_.end() || !fits()) {
      for (const Operand& x : xs) close_if_open(x);
      g = open_.open(Group(domain_of(shape)));
      if (!fits()) {  // rows that do not walk with one stride
        for (Operand& x : xs) {
          if (!g->can_read(x, shape)) x = {dense_copy(x), Source::memory, x.dtype, {}};
        }
      }
      REPRISE_INVARIANT(fits());
    }
    std::vector<std::size_t> nodes;
    for (const Operand& x : xs) nodes.push_back(g->operand(x, shape));
    add(*g, nodes);
    open_.has_grown(g);
    if (out >= 0) owner_[out] = g;
    return g;
  }

  // --------------------------------------------------------------------------------------- placing
  void place(const Equation& e) {
    if (e.prim == &reshape_p) return place_copy(e);
    if (e.prim->kind == Kind::elementwise && has_code(e)) return place_elementwise(e);
    if (const auto r = reduction_of(p_, e)) return place_reduction(e, *r);
    if (e.prim == &concatenate_p) return place_concatenation(e);
    if (e.prim == &pad_p && inside_padding(e, storage_.view[at(e.out[0])])) return place_padding(e);
    if (is_compiled_dot(p_, e)) return place_library(e, DotStep{&e});
    if (e.prim == &scan_p || e.prim == &cond_p || is_plain_while(e) || is_checkpointed(e.prim))
      return place_loop(e);
    if (is_put_to_host(p_, e) && out_.on_host[at(e.out[0])])
      return place_transfer(e, Transfer::begin_write, Transfer::end_write);
    if (is_put_to_device(p_, e) && out_.on_host[at(view(e.in[0]).root)])
      return place_transfer(e, Transfer::begin_read, Transfer::end_read);
    place_library(e, EvalStep{&e});
  }
  // One that asks every element is evaluated (compile.cpp leaves none).
  static bool is_plain_while(const Equation& e) {
    return e.prim == &while_p && !loop_of(e.params).is_mapped();
  }
  bool has_code(const Equation& e) const {
    std::vector<Type> in;
    for (const Atom& a : e.in) in.push_back(p_.type(a));
    if (e.prim == &bitcast_convert_type_p && p_.type(e.out[0]).shape != in[0].shape) return false;
    return has_vector_code(e, in, p_.type(e.out[0])) && options_.capabilities.knows(*e.prim);
  }

  void place_loop(const Equation& e) {
    LoopStep loop{&e, {}};
    auto add = [&](const ProgramPtr& body) {
      loop.bodies.push_back(std::make_shared<const Schedule>(
          make_schedule(body, {.fuse = options_.fuse,
                               .is_body = true,
                               .border = border_of(e, out_.on_host),
                               .capabilities = options_.capabilities})));
    };
    if (e.prim == &while_p || e.prim == &checkpointed_while_p) {
      add(e.params.get<ProgramPtr>("cond_jaxpr"));
      add(e.params.get<ProgramPtr>("body_jaxpr"));
    } else {
      for_each_program(e.params, add);
    }
    place_library(e, std::move(loop));
  }

  // Begun and ended at once; transfer_order moves the two apart.
  void place_transfer(const Equation& e, Transfer begin, Transfer end) {
    place_library(e, TransferStep{begin});
    Step s = out_.steps.back();
    s.what = TransferStep{end};
    emit(std::move(s));
  }

  void place_copy(const Equation& e) {
    const Operand x = operand(e.in[0]);
    const Var out = e.out[0];
    join({x}, x.view.shape, out, any_loops,
         [&](Group& g, const Nodes& in) { g.alias(out, p_.type(out), in[0]); });
  }

  void place_elementwise(const Equation& e) {
    std::vector<Operand> xs;
    Node node;
    for (const Atom& a : e.in) {
      xs.push_back(operand(a));
      node.in_types.push_back(p_.type(a));
    }
    const Type& type = p_.type(e.out[0]);
    node.eqn = &e;
    node.type = type;
    join(xs, type.shape, e.out[0], any_loops, [&](Group& g, const Nodes& in) {
      node.in = in;
      node.per_row = g.is_per_row(type.shape);
      g.add(std::move(node), e.out[0]);
    });
  }

  void place_reduction(const Equation& e, const Reduction& r) {
    const Operand x = operand(e.in[0]);
    const Shape& shape = x.view.shape;
    Node node;
    node.eqn = &e;
    node.in_types = {p_.type(e.in[0])};
    node.type = p_.type(e.out[0]);
    // The order of a sum depends on its own shape alone: one value per row is summed by a kernel of
    // its own.
    auto prepare = [&](Group& g) {
      return !g.is_per_row(shape) && g.set_row(r.columns) && g.can_reduce(r.along_row) &&
             (r.along_row || g.set_segments(r.segments));
    };
    join({x}, shape, e.out[0], prepare, [&](Group& g, const Nodes& in) {
      node.in = {g.as_elements(in[0], shape)};
      node.per_row = r.along_row;
      node.kind = node.per_row ? NodeKind::row_reduce : NodeKind::column_reduce;
      g.add(std::move(node), e.out[0]);
    });
  }

  // Every operand is copied to its part, by the kernel that computes it if there is one.
  void place_concatenation(const Equation& e) {
    const std::vector<View> parts = side_by_side(p_, e, storage_.view[at(e.out[0])]);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Atom& a = e.in[i];
      const bool in_place = a.is_var() && view(a) == parts[i];
      if (!in_place && element_count(parts[i].shape) > 0) write_part(operand(a), parts[i]);
    }
  }
  // The padding value everywhere, then the operand in its place.
  void place_padding(const Equation& e) {
    const View whole = storage_.view[at(e.out[0])];
    const Operand value = operand(e.in[1]), x = operand(e.in[0]);
    write_part(value, whole);
    close_writers(whole.root);
    View inside = *inside_padding(e, whole);
    inside.shape = x.view.shape;
    if (element_count(inside.shape) > 0) write_part(x, inside);
  }
  void write_part(const Operand& x, const View& part) {
    const Open g = join(
        {x}, part.shape, -1, [&](Group& group) { return group.can_store(part); },
        [&](Group& group, const Nodes& in) { group.store(in[0], x.dtype, part); });
    writers_[part.root].emplace(g->serial, g);
  }

  template <class What>
  void place_library(const Equation& e, What what) {
    Step s;
    s.what = std::move(what);
    for (const Atom& a : e.in) {
      if (!a.is_var() && std::is_same_v<What, EvalStep>) {
        s.operands.push_back(View{});
        continue;
      }
      Operand x = operand(a);
      close_writers(x.view.root);
      close_if_open(x);
      finish_pieces(x);
      if (x.source == Source::pieces) x = {dense_copy(x), Source::memory, x.dtype, {}};
      const bool ready =
          x.source == Source::memory && readable(s.what, e, s.operands.size(), x.view);
      if (ready)
        s.operands.push_back(x.view);
      else
        s.operands.push_back(std::is_same_v<What, DotStep> ? dot_copy(e, s.operands.size(), x)
                                                           : dense_copy(x));
      s.reads.push_back(s.operands.back().root);
    }
    flush_cheap_groups();
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      s.results.push_back(storage_.view[at(e.out[k])]);
      if (storage_.uses[at(e.out[k])] > 0 || !has_checkpoints(e, k))
        s.writes.push_back(s.results.back().root);
    }
    emit(std::move(s));
  }
  template <class Whats>
  static bool readable(const Whats& what, const Equation& e, std::size_t k, const View& v) {
    if (std::holds_alternative<DotStep>(what)) {
      const auto d = dot_operand(e, k, v);
      return d && (d->free_stride == 1 || d->contracted_stride == 1);
    }
    View from_start = v;
    from_start.offset = 0;
    return is_dense(from_start);
  }
  View dense_copy(const Operand& x) {
    const Type type{x.dtype, x.view.shape};
    const Var v = new_root(type);
    if (type.size() > 0) {
      Group g(domain_of(type.shape));
      g.alias(v, type, g.operand(x, type.shape));
      emit_kernel(std::move(g).finish({{v, type}}));
    }
    return dense_view(v, type.shape);
  }
  // A copy in an order that products can read, seen in the operand's own order.
  View dot_copy(const Equation& e, std::size_t k, const Operand& x) {
    const Ints order = dot_order(e, k, x.view.shape.size());
    Operand permuted = x;
    for (std::size_t i = 0; i < order.size(); ++i) {
      permuted.view.shape[i] = x.view.shape[static_cast<std::size_t>(order[i])];
      permuted.view.strides[i] = x.view.strides[static_cast<std::size_t>(order[i])];
    }
    const View copy = dense_copy(permuted);
    View out{copy.root, 0, x.view.shape, Ints(order.size(), 0)};
    for (std::size_t i = 0; i < order.size(); ++i)
      out.strides[static_cast<std::size_t>(order[i])] = copy.strides[i];
    return out;
  }
  Var new_root(const Type& type) {
    out_.types.push_back(type);
    pending_.push_back(0);
    is_argument_.push_back(false);
    out_.on_host.push_back(false);
    return static_cast<Var>(out_.types.size()) - 1;
  }

  // Runs open groups whose inputs wait for them alone and weigh at least as much as their results;
  // those that have not changed since they were looked at last still do not.
  void flush_cheap_groups() {
    for (const auto& [serial, now] : open_.take_changed()) {
      count_work(now->values().size() + now->kernel().loads.size());
      std::size_t taken = 0, freed = 0;
      for (const auto& [var, node] : now->values()) {
        if (pending_[at(var)] > 0) taken += out_.types[at(var)].nbytes();
      }
      for (const Store& s : now->kernel().stores)
        taken += static_cast<std::size_t>(now->kernel().size()) * itemsize(s.dtype);
      for (const Load& l : now->kernel().loads) {
        if (l.source == Source::memory && pending_[at(l.root)] == 0 && !is_argument_[at(l.root)]) {
          freed += out_.types[at(l.root)].nbytes();
        }
      }
      if (taken <= freed) close(now);
    }
  }

  void collect_outputs() {
    while (!open_.empty()) close(open_.begin());
    std::unordered_set<Var> given;
    for (const Atom& a : p_.out) {
      if (!a.is_var() && !options_.is_body) {
        out_.outputs.push_back(View{});
        continue;
      }
      const Operand x = operand(a);
      const bool whole = x.source == Source::memory && is_dense(x.view) &&
                         element_count(x.view.shape) == out_.types[at(x.view.root)].size();
      const bool fresh = !options_.is_body || (whole && !is_argument_[at(x.view.root)] &&
                                               given.insert(x.view.root).second);
      out_.outputs.push_back(whole && fresh ? x.view : dense_copy(x));
    }
  }

  const Program& p_;
  const ScheduleOptions& options_;
  Schedule out_;
  Storage storage_;
  std::vector<int> pending_;  // reads of a root that are still to come
  std::vector<bool> is_argument_;
  OpenGroups open_;
  std::unordered_map<Var, Open> owner_;     // of values made by open groups
  std::unordered_map<Var, Opens> writers_;  // of values made in parts
};

}  // namespace

Schedule make_schedule(std::shared_ptr<const Program> p, const ScheduleOptions& options) {
  return Scheduler(std::move(p), options).run();
}

}  // namespace reprise::plan
