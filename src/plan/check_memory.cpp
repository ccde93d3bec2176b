#include "plan/check_memory.h"

#include "base/error.h"
#include "reprise/errors.h"

#include <algorithm>

namespace reprise::plan {
namespace {

struct Lifetime {
  std::string name;
  Place place;
  std::size_t bytes = 0, first = 0, last = 0;
  std::size_t end() const { return place.offset + bytes; }
};

std::vector<Lifetime> lifetimes_of(const Schedule& s, const MemoryPlan& plan) {
  std::vector<Lifetime> all(s.types.size());
  std::vector<bool> written(s.types.size(), false);
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    for (Var v : s.steps[i].writes) {
      Lifetime& l = all[static_cast<std::size_t>(v)];
      if (!written[static_cast<std::size_t>(v)]) l.first = i;
      written[static_cast<std::size_t>(v)] = true;
      l.last = i;
    }
    for (Var v : s.steps[i].reads) all[static_cast<std::size_t>(v)].last = i;
  }
  for (const View& v : s.outputs) {
    if (v.root >= 0) all[static_cast<std::size_t>(v.root)].last = s.steps.size();
  }
  std::vector<Lifetime> out;
  const auto in_block = [](const Place& p) {
    return p.region == Region::arena || p.region == Region::results || p.region == Region::host;
  };
  for (std::size_t v = 0; v < all.size(); ++v) {
    if (!written[v] || !in_block(plan.places[v]) || s.types[v].nbytes() == 0) continue;
    all[v].name = str(s.types[v], " v", v);
    all[v].place = plan.places[v];
    all[v].bytes = s.types[v].nbytes();
    out.push_back(all[v]);
  }
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (plan.scratch_bytes[i] > 0)
      out.push_back({str("scratch of step ", i), plan.scratch[i], plan.scratch_bytes[i], i, i});
    if (plan.host_scratch_bytes[i] > 0) {
      out.push_back({str("bodies on the host of step ", i), plan.host_scratch[i],
                     plan.host_scratch_bytes[i], i, i});
    }
  }
  return out;
}

std::size_t size_of(const MemoryPlan& plan, Region r) {
  if (r == Region::host) return plan.host_bytes;
  return r == Region::arena ? plan.arena_bytes : plan.result_bytes;
}

// Whether the step may write a result in the place of an operand.
bool updates_in_place(const Step& s) {
  const auto* e = std::get_if<EvalStep>(&s.what);
  return std::holds_alternative<Kernel>(s.what) || std::holds_alternative<LoopStep>(s.what) ||
         (e != nullptr && updates_operand(*e->eqn));
}

struct Uses {
  std::size_t first = 0, last = 0;  // steps
  bool any = false;
};
std::vector<Uses> uses_of(const Schedule& s) {
  std::vector<Uses> all(s.types.size());
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    for (const std::vector<Var>* list : {&s.steps[i].reads, &s.steps[i].writes}) {
      for (Var v : *list) {
        Uses& u = all[static_cast<std::size_t>(v)];
        if (!u.any) u.first = i;
        u.any = true;
        u.last = i;
      }
    }
  }
  return all;
}

// Replays the steps: what is under way, and what has been written to the host.
class TransferReplay {
 public:
  explicit TransferReplay(const Schedule& s)
      : s_(s),
        sources_(s.types.size(), 0),
        filling_(s.types.size(), false),
        ready_(s.types.size(), false) {
    for (Var v : s.program->in) ready_[at(v)] = s.on_host[at(v)];
  }

  std::optional<std::string> run() {
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      const auto* t = std::get_if<TransferStep>(&s_.steps[i].what);
      const char* wrong = t != nullptr ? transfer(t->what, s_.steps[i]) : other(s_.steps[i]);
      if (wrong != nullptr) return str("step ", i, " ", wrong);
    }
    if (under_way_ > 0) return "a transfer does not end";
    return std::nullopt;
  }

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }

  const char* transfer(Transfer what, const Step& step) {
    const std::size_t from = at(step.operands[0].root), to = at(step.results[0].root);
    const bool begins = what == Transfer::begin_write || what == Transfer::begin_read;
    if (begins) {
      if (filling_[from]) return "takes a value that is still under way";
      if (what == Transfer::begin_read && !ready_[from])
        return "reads back what is not on the host";
      ++under_way_;
      ++sources_[from];
      filling_[to] = true;
      return nullptr;
    }
    if (!filling_[to]) return "ends a transfer that has not begun";
    --under_way_;
    --sources_[from];
    filling_[to] = false;
    if (what == Transfer::end_write) ready_[to] = true;
    return nullptr;
  }
  const char* other(const Step& step) {
    for (Var v : step.reads) {
      if (filling_[at(v)]) return "reads a value that is still under way";
    }
    for (Var v : step.writes) {
      if (filling_[at(v)] || sources_[at(v)] > 0) return "writes a value that is still under way";
      if (s_.on_host[at(v)]) ready_[at(v)] = true;  // a loop has stacked it
    }
    return nullptr;
  }

  const Schedule& s_;
  std::vector<int> sources_;  // transfers under way that read a value
  std::vector<bool> filling_, ready_;
  int under_way_ = 0;
};

}  // namespace

std::optional<std::string> misplaced_transfer(const Schedule& s) { return TransferReplay(s).run(); }

std::optional<std::string> lost_argument(const Schedule& s, const MemoryPlan& plan) {
  const std::vector<Uses> uses = uses_of(s);
  std::vector<bool> taken(s.program->in.size(), false);
  for (std::size_t v = 0; v < s.types.size(); ++v) {
    const Place& p = plan.places[v];
    if (p.region != Region::argument || s.program->in[p.offset] == static_cast<Var>(v)) continue;
    const auto argument = static_cast<std::size_t>(s.program->in[p.offset]);
    const bool in_place = updates_in_place(s.steps[uses[v].first]);
    const bool read_later =
        uses[argument].any && (uses[argument].last > uses[v].first ||
                               (uses[argument].last == uses[v].first && !in_place));
    const bool returned = std::any_of(s.outputs.begin(), s.outputs.end(), [&](const View& o) {
      return o.root == s.program->in[p.offset];
    });
    if (read_later || returned)
      return str(s.types[v], " v", v, " overwrites the argument ", p.offset, " while it is needed");
    if (taken[p.offset] ||
        std::find(plan.reused.begin(), plan.reused.end(), p.offset) == plan.reused.end() ||
        s.types[argument].nbytes() != s.types[v].nbytes()) {
      return str(s.types[v], " v", v, " takes the argument ", p.offset, " which is not its own");
    }
    taken[p.offset] = true;
  }
  return std::nullopt;
}

std::optional<std::string> overlap_in(const Schedule& s, const MemoryPlan& plan) {
  std::vector<Lifetime> all = lifetimes_of(s, plan);
  for (const Lifetime& l : all) {
    const std::size_t size = size_of(plan, l.place.region);
    if (l.end() > size)
      return str(l.name, " ends at ", l.end(), ", behind its block of ", size, " bytes");
  }
  std::sort(all.begin(), all.end(),
            [](const Lifetime& a, const Lifetime& b) { return a.place.offset < b.place.offset; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size() && all[j].place.offset < all[i].end(); ++j) {
      const Lifetime& a = all[i].first <= all[j].first ? all[i] : all[j];
      const Lifetime& b = all[i].first <= all[j].first ? all[j] : all[i];
      if (a.place.region != b.place.region || a.last < b.first) continue;
      const bool takes_over = a.last == b.first && a.first < b.first &&
                              a.place.offset == b.place.offset && a.bytes == b.bytes &&
                              updates_in_place(s.steps[b.first]);
      if (!takes_over) return str(a.name, " and ", b.name, " share bytes while both live");
    }
  }
  return std::nullopt;
}

#if defined(REPRISE_CHECK)
namespace {
void refuse(const char* pass, const std::optional<std::string>& what) {
  if (what) fail<InternalError>("after ", pass, ": ", *what);
}
}  // namespace

void check_after(const char* pass, const Schedule& s) { refuse(pass, misplaced_transfer(s)); }
void check_after(const char* pass, const Schedule& s, const MemoryPlan& plan) {
  refuse(pass, overlap_in(s, plan));
  refuse(pass, lost_argument(s, plan));
}
#else
void check_after(const char*, const Schedule&) {}
void check_after(const char*, const Schedule&, const MemoryPlan&) {}
#endif

}  // namespace reprise::plan
