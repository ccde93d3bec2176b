#include "runtime/relay.h"

#include "base/machine.h"
#include "products/tiled_dot.h"
#include "plan/loops.h"
#include "plan/relay.h"
#include "runtime/code.h"
#include "runtime/products.h"

#include <algorithm>
#include <map>
#include <optional>

namespace reprise {
namespace {

using codegen::MatmulSpec;
using plan::DotStep;
using plan::Kernel;
using plan::RelayStep;
using plan::Schedule;
using plan::Step;

constexpr std::int64_t fewest_slices = 4;
constexpr std::size_t most_steps = 16, most_between = 4;

// The number of outermost batch dimensions that make up the slices.
std::optional<std::size_t> sliced_dims(const MatmulSpec& s, std::int64_t slices) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < s.batch.size(); ++d) {
    n *= s.batch[d];
    if (n == slices) return d + 1;
  }
  return std::nullopt;
}

// How a step reads or writes one value: loops with strides.
struct Access {
  Var root;
  Ints sizes, strides;
  std::int64_t offset;
  bool is_write;
};

class Finder {
 public:
  explicit Finder(const Schedule& s)
      : s_(s), specs_(s.steps.size()), users_(s.types.size(), 0), is_outside_(s.on_host) {
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      if (std::holds_alternative<DotStep>(s.steps[i].what)) specs_[i] = matmul_spec(s, s.steps[i]);
      for (Var v : touched(i)) ++users_[at(v)];
    }
    for (Var v : s.program->in) is_outside_[at(v)] = true;
    for (const plan::View& v : s.outputs) {
      if (v.root >= 0) is_outside_[at(v.root)] = true;
    }
  }

  // The steps with relays among them; nullopt: there is none.
  std::optional<std::vector<Step>> run() {
    std::vector<bool> is_member(s_.steps.size(), false);
    std::map<std::size_t, Step> relay_at;  // in the place of its last member
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      if (is_member[i] || !may_begin(i)) continue;
      const std::vector<std::size_t> members = relay_with(i, is_member);
      if (members.empty()) continue;
      for (std::size_t m : members) is_member[m] = true;
      relay_at.emplace(members.back(), joined(members));
      i = members.back();
    }
    if (relay_at.empty()) return std::nullopt;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      const auto relay = relay_at.find(i);
      if (relay != relay_at.end())
        steps.push_back(std::move(relay->second));
      else if (!is_member[i])
        steps.push_back(s_.steps[i]);
    }
    return steps;
  }

 private:
  using Members = std::vector<std::size_t>;  // steps, in order
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }
  static bool has(const std::vector<Var>& list, Var v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }
  static bool share(const std::vector<Var>& a, const std::vector<Var>& b) {
    return std::any_of(a.begin(), a.end(), [&](Var v) { return has(b, v); });
  }
  std::vector<Var> touched(std::size_t i) const {
    std::vector<Var> out = s_.steps[i].reads;
    for (Var v : s_.steps[i].writes) {
      if (!has(out, v)) out.push_back(v);
    }
    return out;
  }

  bool may_begin(std::size_t i) const {
    return specs_[i] && work_of(*specs_[i]) >= machine::work_worth_threads &&
           codegen::can_tile(*specs_[i]) && !is_one_call(*specs_[i]);
  }
  // The largest relay around product i in as many slices as pay; empty: nothing is passed on.
  Members relay_with(std::size_t i, const std::vector<bool>& is_taken) {
    std::int64_t slices = 1;
    for (std::int64_t n : specs_[i]->batch) slices *= n;
    for (std::size_t d = specs_[i]->batch.size(); d-- > 0; slices /= specs_[i]->batch[d]) {
      if (slices < fewest_slices || work_of(*specs_[i]) / slices < machine::work_worth_a_slice)
        continue;
      slices_ = slices;
      Members members{i};
      if (!is_relay(members)) continue;
      while (members.size() < most_steps && grow(members, is_taken)) {
      }
      if (!passed_in(members).empty()) return members;
    }
    return {};
  }
  // Adds a step that makes what a member reads or reads what one makes.
  bool grow(Members& members, const std::vector<bool>& is_taken) const {
    const std::size_t first = members.front() - std::min(members.front(), most_between + 1);
    const std::size_t last = std::min(members.back() + most_between + 1, s_.steps.size() - 1);
    for (std::size_t c = first; c <= last; ++c) {
      const auto is_related = [&](std::size_t m) {
        return m < c ? share(s_.steps[m].writes, s_.steps[c].reads)
                     : share(s_.steps[c].writes, s_.steps[m].reads);
      };
      const bool is_member = std::binary_search(members.begin(), members.end(), c);
      if (is_taken[c] || is_member || std::none_of(members.begin(), members.end(), is_related))
        continue;
      Members more = members;
      more.insert(std::lower_bound(more.begin(), more.end(), c), c);
      if (!is_relay(more)) continue;
      members = std::move(more);
      return true;
    }
    return false;
  }

  // Every step can be cut, what one of them writes the others touch in the same slice only, and
  // steps in between can go before all of them.
  bool is_relay(const Members& members) const {
    std::vector<Access> all;
    for (std::size_t m : members) {
      if (!can_cut(m)) return false;
      for (Access& a : accesses(m)) all.push_back(std::move(a));
    }
    for (const Access& write : all) {
      const auto is_read = [&](const Access& a) { return a.root == write.root && !a.is_write; };
      const auto strays = [&](const Access& a) {
        return a.root == write.root && !keeps_to_slices(a);
      };
      if (write.is_write && std::any_of(all.begin(), all.end(), is_read) &&
          std::any_of(all.begin(), all.end(), strays))
        return false;
    }
    for (std::size_t i = members.front(); i < members.back(); ++i) {
      if (!std::binary_search(members.begin(), members.end(), i) && !goes_before(i, members))
        return false;
    }
    return true;
  }
  bool goes_before(std::size_t i, const Members& members) const {
    const Step& step = s_.steps[i];
    if (std::holds_alternative<plan::TransferStep>(step.what)) return false;
    return std::all_of(members.begin(), members.end(), [&](std::size_t m) {
      return m > i ||
             (!share(s_.steps[m].writes, touched(i)) && !share(s_.steps[m].reads, step.writes));
    });
  }
  bool keeps_to_slices(const Access& a) const {
    const std::int64_t size = s_.types[at(a.root)].size();
    return size % slices_ == 0 &&
           plan::keeps_to_slices(a.sizes, a.strides, a.offset, slices_, size / slices_);
  }
  bool can_cut(std::size_t i) const {
    if (const auto* k = std::get_if<Kernel>(&s_.steps[i].what)) {
      if (k->has_column_reduce || k->loads.size() + k->stores.size() > few_pointers) return false;
      const plan::Loops l = plan::loops_of(*k, 1);
      return l.tile_rows == 0 && (l.rows % slices_ == 0 ||
                                  (l.rows == 1 && !k->has_row_reduce && l.columns % slices_ == 0));
    }
    if (!specs_[i]) return false;
    return sliced_dims(*specs_[i], slices_) && !specs_[i]->bias &&
           codegen::can_tile(slice_of(*specs_[i], slices_)) && !is_one_call(*specs_[i]);
  }
  std::vector<Access> accesses(std::size_t i) const {
    const Step& step = s_.steps[i];
    std::vector<Access> out;
    if (const auto* k = std::get_if<Kernel>(&step.what)) {
      for (const plan::Load& l : k->loads) {
        if (l.source == plan::Source::memory)
          out.push_back({l.root, k->domain, l.strides, l.offset, false});
      }
      for (const plan::Store& x : k->stores)
        out.push_back({x.root, k->domain, x.strides, x.offset, true});
      return out;
    }
    const MatmulSpec& m = *specs_[i];
    const auto add = [&](const plan::View& v, const Ints& strides, std::int64_t rows,
                         std::int64_t columns, bool is_write) {
      Ints sizes = m.batch;
      sizes.insert(sizes.end(), {rows, columns});
      out.push_back({v.root, std::move(sizes), strides, v.offset, is_write});
    };
    add(step.operands[0], m.a_strides, m.m, m.k, false);
    add(step.operands[1], m.b_strides, m.k, m.n, false);
    add(step.results[0], m.c_strides, m.m, m.n, true);
    if (m.accumulate) add(step.results[0], m.c_strides, m.m, m.n, false);
    return out;
  }
  // Made and read by members only, each in its slice.
  std::vector<Var> passed_in(const Members& members) const {
    std::vector<Var> out;
    const auto strays = [&](Var v) {
      return std::any_of(members.begin(), members.end(), [&](std::size_t m) {
        const std::vector<Access> all = accesses(m);
        return std::any_of(all.begin(), all.end(),
                           [&](const Access& a) { return a.root == v && !keeps_to_slices(a); });
      });
    };
    for (std::size_t i : members) {
      for (Var v : s_.steps[i].writes) {
        const auto users = std::count_if(members.begin(), members.end(),
                                         [&](std::size_t m) { return has(touched(m), v); });
        if (users > 1 && users == users_[at(v)] && !is_outside_[at(v)] && !has(out, v) &&
            !strays(v))
          out.push_back(v);
      }
    }
    return out;
  }

  Step joined(const Members& members) {
    RelayStep relay;
    relay.slices = slices_;
    relay.passed = passed_in(members);
    Step out;
    const auto add = [&](std::vector<Var>& list, const std::vector<Var>& more) {
      for (Var v : more) {
        if (!has(relay.passed, v) && !has(list, v)) list.push_back(v);
      }
    };
    for (std::size_t m : members) {
      add(out.reads, s_.steps[m].reads);
      add(out.writes, s_.steps[m].writes);
      relay.steps.push_back(s_.steps[m]);
    }
    std::sort(out.reads.begin(), out.reads.end());
    out.what = std::move(relay);
    return out;
  }

  const Schedule& s_;
  std::vector<std::optional<MatmulSpec>> specs_;  // of steps that are products
  std::vector<std::ptrdiff_t> users_;             // of every root: steps
  // of every root: an input, an output, or on the host
  std::vector<bool> is_outside_;
  std::int64_t slices_ = 1;  // of the relay that is being found
};

}  // namespace

MatmulSpec slice_of(MatmulSpec s, std::int64_t slices) {
  const auto dims = static_cast<std::ptrdiff_t>(sliced_dims(s, slices).value());
  for (Ints* x : {&s.batch, &s.a_strides, &s.b_strides, &s.c_strides})
    x->erase(x->begin(), x->begin() + dims);
  return s;
}

std::vector<SliceStart> slice_starts(const MatmulSpec& s, std::int64_t slices) {
  const std::size_t dims = sliced_dims(s, slices).value();
  std::vector<SliceStart> out(static_cast<std::size_t>(slices));
  for (std::int64_t g = 0; g < slices; ++g) {
    std::int64_t rest = g;
    for (std::size_t d = dims; d-- > 0; rest /= s.batch[d]) {
      const std::int64_t i = rest % s.batch[d];
      SliceStart& start = out[static_cast<std::size_t>(g)];
      start = {start.a + i * s.a_strides[d], start.b + i * s.b_strides[d],
               start.c + i * s.c_strides[d]};
    }
  }
  return out;
}

std::shared_ptr<const Schedule> with_relays(std::shared_ptr<const Schedule> schedule) {
  const auto may_have_some = [](const Step& step) {
    const bool is_batched =
        std::holds_alternative<DotStep>(step.what) && step.operands[0].shape.size() > 2;
    return is_batched || std::holds_alternative<plan::LoopStep>(step.what);
  };
  if (std::none_of(schedule->steps.begin(), schedule->steps.end(), may_have_some)) return schedule;
  Schedule s = *schedule;
  bool any = false;
  for (Step& step : s.steps) {
    auto* loop = std::get_if<plan::LoopStep>(&step.what);
    if (loop == nullptr) continue;
    for (auto& body : loop->bodies) {
      const auto relayed = with_relays(body);
      any = any || relayed != body;
      body = relayed;
    }
  }
  if (auto steps = Finder(s).run()) {
    s.steps = std::move(*steps);
    any = true;
  }
  return any ? std::make_shared<const Schedule>(std::move(s)) : schedule;
}

}  // namespace reprise
