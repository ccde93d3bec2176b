#include "plan/find_relays.h"

#include "base/machine.h"
#include "plan/loops.h"
#include "plan/relay.h"

#include <algorithm>
#include <map>
#include <optional>

namespace reprise::plan {
namespace {

constexpr std::int64_t fewest_slices = 4;
constexpr std::size_t most_steps = 16, most_between = 4;

// How a step reads or writes one value: loops with strides.
struct Access {
  Var root;
  Ints sizes, strides;
  std::int64_t offset;
  bool is_write;
};

class Finder {
 public:
  Finder(const Schedule& s, const Capabilities& can)
      : s_(s),
        can_(can),
        specs_(s.steps.size()),
        users_(s.types.size(), 0),
        is_outside_(s.on_host) {
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      if (std::holds_alternative<DotStep>(s.steps[i].what)) specs_[i] = matmul_spec(s, s.steps[i]);
      for (Var v : touched(i)) ++users_[at(v)];
    }
    for (Var v : s.program->in) is_outside_[at(v)] = true;
    for (const View& v : s.outputs) {
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
           can_.tile(*specs_[i]) && !can_.share_threads(*specs_[i]);
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
    if (std::holds_alternative<TransferStep>(step.what)) return false;
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
      if (k->has_column_reduce || k->has_bounds() ||
          k->loads.size() + k->stores.size() > few_pointers)
        return false;
      const Loops l = loops_of(*k, 1);
      return l.tile_rows == 0 && (l.rows % slices_ == 0 ||
                                  (l.rows == 1 && !k->has_row_reduce && l.columns % slices_ == 0));
    }
    if (!specs_[i]) return false;
    return has_slices(*specs_[i], slices_) && !specs_[i]->bias &&
           can_.tile(slice_of(*specs_[i], slices_)) && !can_.share_threads(*specs_[i]);
  }
  std::vector<Access> accesses(std::size_t i) const {
    const Step& step = s_.steps[i];
    std::vector<Access> out;
    if (const auto* k = std::get_if<Kernel>(&step.what)) {
      for (const Load& l : k->loads) {
        if (l.source == Source::memory)
          out.push_back({l.root, k->domain, l.strides, l.offset, false});
      }
      for (const Store& x : k->stores)
        out.push_back({x.root, k->domain, x.strides, x.offset, true});
      return out;
    }
    const MatmulSpec& m = *specs_[i];
    const auto add = [&](const View& v, const Ints& strides, std::int64_t rows,
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
  const Capabilities& can_;
  std::vector<std::optional<MatmulSpec>> specs_;  // of steps that are products
  std::vector<std::ptrdiff_t> users_;             // of every root: steps
  // of every root: an input, an output, or on the host
  std::vector<bool> is_outside_;
  std::int64_t slices_ = 1;  // of the relay that is being found
};

}  // namespace

std::shared_ptr<const Schedule> with_relays(std::shared_ptr<const Schedule> schedule,
                                            const Capabilities& can) {
  const auto may_have_some = [](const Step& step) {
    const bool is_batched =
        std::holds_alternative<DotStep>(step.what) && step.operands[0].shape.size() > 2;
    return is_batched || std::holds_alternative<LoopStep>(step.what);
  };
  if (std::none_of(schedule->steps.begin(), schedule->steps.end(), may_have_some)) return schedule;
  Schedule s = *schedule;
  bool any = false;
  for (Step& step : s.steps) {
    auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) continue;
    for (auto& body : loop->bodies) {
      const auto relayed = with_relays(body, can);
      any = any || relayed != body;
      body = relayed;
    }
  }
  if (auto steps = Finder(s, can).run()) {
    s.steps = std::move(*steps);
    any = true;
  }
  return any ? std::make_shared<const Schedule>(std::move(s)) : schedule;
}

}  // namespace reprise::plan
