#include "plan/memory.h"

#include "base/dtype.h"
#include "base/work.h"
#include "ops/records.h"
#include "plan/host_memory.h"
#include "plan/place_buffers.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace reprise::plan {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

// Which operands of a kernel its stored values can replace: of equal size, read only at the element
// that is being written, and not after the pass that writes.
class KernelPlaces {
 public:
  KernelPlaces(const Kernel& k, const Schedule& s) : s_(s), stages_(stages_of(k)) {
    last_stage_ = *std::max_element(stages_.begin(), stages_.end());
    for (const Load& l : k.loads) {
      if (l.source == Source::memory) ++loads_of_[l.root];
    }
    for (const Store& t : k.stores) store_of_.emplace(t.root, &t);
    dense_ = row_major_strides(k.domain);
    for (const Load& l : k.loads) {
      count_work();
      const bool whole =
          l.source == Source::memory && l.offset == 0 && l.bounds.empty() && l.strides == dense_;
      if (whole && loads_of_.at(l.root) == 1) candidates_.push_back(l.root);
    }
  }
  std::vector<Var> of(Var result) const {
    const Store& s = *store_of_.at(result);
    if (s.strides != dense_ || s.offset != 0 || stages_[s.node] != last_stage_) return {};
    std::vector<Var> out;
    for (Var v : candidates_) {
      if (bytes(v) == bytes(result)) out.push_back(v);
    }
    return out;
  }

 private:
  std::size_t bytes(Var v) const { return s_.types[static_cast<std::size_t>(v)].nbytes(); }

  const Schedule& s_;
  std::vector<std::size_t> stages_;
  std::size_t last_stage_ = 0;
  Ints dense_;
  std::unordered_map<Var, int> loads_of_;
  std::unordered_map<Var, const Store*> store_of_;
  std::vector<Var> candidates_;
};

// The first write and the last read of every root.
struct Lifetimes {
  std::vector<std::size_t> first, last;
  explicit Lifetimes(const Schedule& s) : first(s.types.size(), none), last(s.types.size(), 0) {
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      for (Var v : s.steps[i].writes) {
        first[static_cast<std::size_t>(v)] = std::min(first[static_cast<std::size_t>(v)], i);
        last[static_cast<std::size_t>(v)] = std::max(last[static_cast<std::size_t>(v)], i);
      }
      for (Var v : s.steps[i].reads)
        last[static_cast<std::size_t>(v)] = std::max(last[static_cast<std::size_t>(v)], i);
    }
  }
};

// The same of an equation that changes part of its first operand: all of it, dense, and no other
// operand lies there.
std::vector<Var> replaceable(const EvalStep& e, const Step& step, Var result,
                             const Schedule& schedule) {
  if (!updates_operand(*e.eqn)) return {};
  const View& operand = step.operands[0];
  const auto bytes = [&](Var v) { return schedule.types[static_cast<std::size_t>(v)].nbytes(); };
  if (operand.root < 0 || operand.offset != 0 || bytes(operand.root) != bytes(result)) return {};
  const auto reads = std::count_if(step.operands.begin(), step.operands.end(),
                                   [&](const View& v) { return v.root == operand.root; });
  return reads == 1 ? std::vector<Var>{operand.root} : std::vector<Var>{};
}

// Which operands a result of a step can replace.
std::vector<Var> replaceable(const Schedule& s,
                             const std::vector<std::vector<CarriedRoots>>& carried,
                             std::size_t step, Var result) {
  if (const auto* k = std::get_if<Kernel>(&s.steps[step].what))
    return KernelPlaces(*k, s).of(result);
  if (const auto* e = std::get_if<EvalStep>(&s.steps[step].what))
    return replaceable(*e, s.steps[step], result, s);
  std::vector<Var> out;
  if (step >= carried.size()) return out;
  for (const CarriedRoots& c : carried[step]) {
    if (c.result == result) out.push_back(c.initial);
  }
  return out;
}

class Planner {
 public:
  Planner(const Schedule& s, const MemoryRequest& r) : s_(s), r_(r) {}

  MemoryPlan run() {
    find_lifetimes();
    if (!r_.donated.empty()) reuse_donated();
    if (r_.in_place) share_places();
    make_buffers();
    const Placement placed = place_buffers(buffers_);
    plan_.result_bytes = placed.result_bytes;
    end_ = placed.end;
    return finish();
  }

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }

  void find_lifetimes() {
    Lifetimes lifetimes(s_);
    first_ = std::move(lifetimes.first);
    last_ = std::move(lifetimes.last);
    kind_.assign(s_.types.size(), Region::arena);
    for (std::size_t i = 0; i < s_.program->in.size(); ++i) {
      const Var v = s_.program->in[i];
      kind_[at(v)] = Region::argument;
      plan_.argument_bytes += s_.types[at(v)].nbytes();
    }
    for (std::size_t v = 0; v < s_.types.size(); ++v) {
      if (s_.on_host[v] && kind_[v] == Region::arena) kind_[v] = Region::host;
    }
    for (const View& v : s_.outputs) {
      if (v.root < 0 || kind_[at(v.root)] == Region::argument) continue;
      last_[at(v.root)] = s_.steps.size();
      const bool own = r_.outputs_given || s_.types[at(v.root)].nbytes() < large_output;
      kind_[at(v.root)] = own ? Region::own : Region::results;
    }
  }
  // Outputs that take over the memory of a donated argument of their size, which has been read for
  // the last time when the output is first written.
  void reuse_donated() {
    std::vector<Var> free;
    std::unordered_set<Var> returned;
    for (const View& o : s_.outputs) returned.insert(o.root);
    std::unordered_map<Var, std::size_t> number_of;
    for (std::size_t i = 0; i < r_.donated.size(); ++i) {
      const Var v = s_.program->in[i];
      number_of.emplace(v, i);
      const bool is_large = s_.types[at(v)].nbytes() >= memory_alignment;
      if (r_.donated[i] && !returned.contains(v) && is_large) free.push_back(v);
    }
    for (const View& o : s_.outputs) {
      if (o.root < 0 || (kind_[at(o.root)] != Region::own && kind_[at(o.root)] != Region::results))
        continue;
      const auto found =
          std::find_if(free.begin(), free.end(), [&](Var v) { return can_take_over(o.root, v); });
      if (found == free.end()) continue;
      const std::size_t number = number_of.at(*found);
      kind_[at(o.root)] = Region::argument;
      plan_.places.resize(s_.types.size());
      plan_.places[at(o.root)] = {Region::argument, number};
      plan_.reused.push_back(number);
      plan_.alias_bytes += s_.types[at(o.root)].nbytes();
      free.erase(found);
    }
  }
  bool can_take_over(Var output, Var argument) const {
    if (s_.types[at(output)].nbytes() != s_.types[at(argument)].nbytes() ||
        first_[at(output)] == none)
      return false;
    if (last_[at(argument)] != first_[at(output)]) return last_[at(argument)] < first_[at(output)];
    if (!r_.in_place) return false;
    const std::vector<Var> places = replaceable(s_, r_.carried, first_[at(output)], output);
    return std::find(places.begin(), places.end(), argument) != places.end();
  }
  // Values that take over the place of an operand that ends with the step.
  void share_places() {
    heir_of_.assign(s_.types.size(), -1);
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      std::unordered_set<Var> taken;
      std::optional<KernelPlaces> places;
      if (const auto* k = std::get_if<Kernel>(&s_.steps[i].what)) places.emplace(*k, s_);
      for (Var result : s_.steps[i].writes) {
        // A value made in parts has been begun before: its place is taken already.
        if ((kind_[at(result)] != Region::arena && kind_[at(result)] != Region::results) ||
            first_[at(result)] != i)
          continue;
        for (Var from : places ? places->of(result) : replaceable(s_, r_.carried, i, result)) {
          if (taken.contains(from) || last_[at(from)] != i || kind_[at(from)] != Region::arena ||
              first_[at(from)] == none)
            continue;
          heir_of_[at(result)] = from;
          taken.insert(from);
          break;
        }
      }
    }
  }
  void make_buffers() {
    buffer_of_.assign(s_.types.size(), none);
    std::vector<Var> order(s_.types.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Var a, Var b) { return first_[at(a)] < first_[at(b)]; });
    for (Var v : order) {
      if (first_[at(v)] == none ||
          (kind_[at(v)] != Region::arena && kind_[at(v)] != Region::results))
        continue;
      const std::size_t bytes = aligned(s_.types[at(v)].nbytes());
      if (bytes == 0) continue;
      std::size_t b =
          heir_of_.empty() || heir_of_[at(v)] < 0 ? none : buffer_of_[at(heir_of_[at(v)])];
      if (b == none) {
        b = buffers_.size();
        buffers_.push_back({bytes, first_[at(v)], last_[at(v)], false, none});
      }
      buffers_[b].last = std::max(buffers_[b].last, last_[at(v)]);
      buffers_[b].is_result |= kind_[at(v)] == Region::results;
      buffer_of_[at(v)] = b;
    }
    make_scratch_buffers();
  }
  // Small scratch memory is one buffer for all steps: thousands of buffers of one step each would
  // only slow down the plan.
  void make_scratch_buffers() {
    constexpr std::size_t small = 64 << 10;
    Buffer shared;
    const std::size_t shared_index = buffers_.size();
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      const std::size_t bytes = aligned(r_.scratch_bytes[i]);
      if (bytes == 0 || bytes > small) continue;
      shared = {std::max(shared.bytes, bytes), std::min(shared.first, i), i, false, none};
    }
    if (shared.bytes > 0) buffers_.push_back(shared);
    scratch_of_.assign(s_.steps.size(), none);
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      const std::size_t bytes = aligned(r_.scratch_bytes[i]);
      if (bytes == 0) continue;
      scratch_of_[i] = bytes <= small ? shared_index : buffers_.size();
      if (bytes > small) buffers_.push_back({bytes, i, i, false, none});
    }
  }
  MemoryPlan finish() {
    plan_.places.resize(s_.types.size());
    for (std::size_t i = 0; i < s_.program->in.size(); ++i)
      plan_.places[at(s_.program->in[i])] = {Region::argument, i};
    auto place = [&](std::size_t b) {
      const std::size_t offset = buffers_[b].offset;
      return offset < plan_.result_bytes ? Place{Region::results, offset}
                                         : Place{Region::arena, offset - plan_.result_bytes};
    };
    for (std::size_t v = 0; v < s_.types.size(); ++v) {
      if (buffer_of_[v] != none) plan_.places[v] = place(buffer_of_[v]);
    }
    for (const View& v : s_.outputs) {  // in order: a caller that gives places numbers them so
      if (v.root < 0 || kind_[at(v.root)] != Region::own ||
          plan_.places[at(v.root)].region == Region::own)
        continue;
      plan_.places[at(v.root)] = {Region::own, plan_.own.size()};
      plan_.own.push_back(v.root);
      if (!r_.outputs_given)
        plan_.own_bytes += handle_size + aligned(s_.types[at(v.root)].nbytes());
    }
    for (std::size_t b : scratch_of_) plan_.scratch.push_back(b == none ? Place{} : place(b));
    plan_.scratch_bytes = r_.scratch_bytes;
    plan_.arena_bytes = end_ - plan_.result_bytes;
    plan_host_memory(s_, r_, plan_);
    return std::move(plan_);
  }

  const Schedule& s_;
  const MemoryRequest& r_;
  MemoryPlan plan_;
  std::vector<std::size_t> first_, last_;  // step of the first write, of the last read
  std::vector<Region> kind_;
  std::vector<Var> heir_of_;
  std::vector<std::size_t> buffer_of_, scratch_of_;
  std::vector<Buffer> buffers_;
  std::size_t end_ = 0;
};

}  // namespace

bool updates_operand(const Equation& e) {
  constexpr const Primitive* all[] = {&scatter_p,     &scatter_add_p, &scatter_mul_p,
                                      &scatter_min_p, &scatter_max_p, &dynamic_update_slice_p};
  if (std::find(std::begin(all), std::end(all), e.prim) == std::end(all)) return false;
  const std::ptrdiff_t arrays = e.prim == &dynamic_update_slice_p ? 2 : 3;
  // else it is evaluated
  return std::all_of(e.in.begin(), e.in.begin() + arrays, [](const Atom& a) { return a.is_var(); });
}

MemoryPlan plan_memory(const Schedule& s, const MemoryRequest& r) { return Planner(s, r).run(); }

std::vector<bool> updated_in_place(const Schedule& body, std::size_t first, std::size_t count) {
  const Lifetimes lives(body);
  std::vector<bool> out;
  for (std::size_t k = 0; k < count; ++k) {
    const Var in = body.program->in[first + k], result = body.outputs[k].root;
    const auto from = static_cast<std::size_t>(in), to = static_cast<std::size_t>(result);
    const std::size_t last = lives.last[from], write = lives.first[to];
    bool fits = write != none && !body.on_host[from] && !body.on_host[to];
    if (fits && last == write) {
      const std::vector<Var> places = replaceable(body, {}, write, result);
      fits = std::find(places.begin(), places.end(), in) != places.end();
    }
    out.push_back(fits && last <= write);
  }
  return out;
}

std::vector<std::optional<std::size_t>> stacked_inputs(const Schedule& body, std::size_t first,
                                                       std::size_t count) {
  std::vector<std::optional<std::size_t>> out(count);
  for (const Step& step : body.steps) {
    const auto* k = std::get_if<Kernel>(&step.what);
    if (k == nullptr || !is_copy(*k)) continue;
    const Load& load = k->loads[0];
    const bool is_whole = load.offset == 0 && k->stores[0].offset == 0 &&
                          load.strides == row_major_strides(k->domain) &&
                          k->size() == body.types[static_cast<std::size_t>(load.root)].size();
    const auto carried = body.program->in.begin() + static_cast<std::ptrdiff_t>(first);
    const auto input = std::find(carried, carried + static_cast<std::ptrdiff_t>(count), load.root);
    const auto stacked =
        std::find_if(body.outputs.begin() + static_cast<std::ptrdiff_t>(count), body.outputs.end(),
                     [&](const View& v) { return v.root == k->stores[0].root; });
    if (!is_whole || input == carried + static_cast<std::ptrdiff_t>(count) ||
        stacked == body.outputs.end())
      continue;
    if (body.on_host[static_cast<std::size_t>(stacked->root)]) continue;
    out[static_cast<std::size_t>(input - carried)] =
        static_cast<std::size_t>(stacked - body.outputs.begin()) - count;
  }
  return out;
}

}  // namespace reprise::plan
