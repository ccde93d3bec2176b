#include "plan/transfers.h"

#include "base/machine.h"
#include "ops/records.h"
#include "plan/cost.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace reprise::plan {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);
using machine::disk_speed, machine::memory_speed, machine::product_speed;

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

double seconds_of(const Schedule& s, const Step& step) {
  const Equation* e = nullptr;
  if (const auto* d = std::get_if<DotStep>(&step.what)) e = d->eqn;
  if (const auto* l = std::get_if<LoopStep>(&step.what)) e = l->eqn;
  if (const auto* o = std::get_if<EvalStep>(&step.what)) e = o->eqn;
  if (e != nullptr) {
    const Cost c = cost_of(*s.program, *e);
    return std::max(c.bytes / memory_speed, c.matmul_flops / product_speed);
  }
  if (const auto* r = std::get_if<RelayStep>(&step.what)) {
    return std::accumulate(r->steps.begin(), r->steps.end(), 0.0,
                           [&](double sum, const Step& part) { return sum + seconds_of(s, part); });
  }
  double bytes = 0;
  for (Var v : step.reads) bytes += static_cast<double>(s.types[at(v)].nbytes());
  for (Var v : step.writes) bytes += static_cast<double>(s.types[at(v)].nbytes());
  return std::holds_alternative<Kernel>(step.what) ? bytes / memory_speed : 0;
}

// Steps that stay where they are, and transfers that end or begin in the gaps between them: gap g
// is before the fixed step g.
class Spreader {
 public:
  Spreader(const Schedule& s, const MemoryRequest& r, double allowed)
      : s_(s), r_(r), speed_(r.host_on_disk ? disk_speed : memory_speed) {
    find_fixed();
    find_lifetimes();
    const std::size_t peak = live_.empty() ? 0 : *std::max_element(live_.begin(), live_.end());
    budget_ = static_cast<std::size_t>(static_cast<double>(peak) * allowed);
  }

  std::vector<std::size_t> run() {
    // Transfers are carried out in the order of their begins: what is needed first goes first.
    std::stable_sort(reads_.begin(), reads_.end(), [&](const Read& a, const Read& b) {
      return first_[at(a.device)] < first_[at(b.device)];
    });
    for (Write& w : writes_) spread(w);
    for (Read& r : reads_) spread(r);
    return order();
  }

 private:
  struct Write {
    std::size_t begin;  // fixed step
    std::size_t end_step;
    Var device, host;
    std::size_t gap = 0;  // where it ends
  };
  struct Read {
    std::size_t begin_step, end_step;
    Var host, device;
    std::size_t from = 0, gap = 0;  // where it begins, where it ends
  };

  static const Transfer* transfer(const Step& s) {
    const auto* t = std::get_if<TransferStep>(&s.what);
    return t == nullptr ? nullptr : &t->what;
  }
  void find_fixed() {
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      const Step& step = s_.steps[i];
      const Transfer* t = transfer(step);
      if (t == nullptr || *t == Transfer::begin_write) {
        if (t != nullptr)
          writes_.push_back({fixed_.size(), i + 1, step.operands[0].root, step.results[0].root});
        fixed_.push_back(i);
        free_.push_back(seconds_of(s_, step));
      } else if (*t == Transfer::begin_read) {
        reads_.push_back({i, i + 1, step.operands[0].root, step.results[0].root});
      }
    }
  }
  // As if no transfer took time: a value that is read back lives from its first reader on.
  void find_lifetimes() {
    first_.assign(s_.types.size(), none);
    last_.assign(s_.types.size(), 0);
    live_.assign(fixed_.size(), 0);
    for (std::size_t g = 0; g < fixed_.size(); ++g) {
      const Step& step = s_.steps[fixed_[g]];
      for (const std::vector<Var>* list : {&step.reads, &step.writes}) {
        for (Var v : *list) {
          first_[at(v)] = std::min(first_[at(v)], g);
          last_[at(v)] = g;
        }
      }
      live_[g] += r_.scratch_bytes[fixed_[g]];
    }
    for (const View& v : s_.outputs) {
      if (v.root >= 0 && !fixed_.empty()) last_[at(v.root)] = fixed_.size() - 1;
    }
    std::vector<bool> elsewhere = s_.on_host;
    for (Var v : s_.program->in) elsewhere[at(v)] = true;
    for (std::size_t v = 0; v < s_.types.size(); ++v) {
      if (elsewhere[v] || first_[v] == none) continue;
      for (std::size_t g = first_[v]; g <= last_[v]; ++g) live_[g] += s_.types[v].nbytes();
    }
  }
  double seconds(Var v) const { return static_cast<double>(s_.types[at(v)].nbytes()) / speed_; }
  bool has_room(std::size_t g, Var v) const {
    return live_[g] + s_.types[at(v)].nbytes() <= budget_;
  }
  // Hides part of a transfer behind a fixed step; what is left to hide.
  double hide(std::size_t g, double left) {
    const double part = std::min(free_[g], left);
    free_[g] -= part;
    return left - part;
  }

  void spread(Write& w) {
    std::size_t limit = fixed_.size();  // the value is on the host when it is read back
    for (const Read& r : reads_) {
      if (r.host == w.host) limit = std::min(limit, first_[at(r.device)]);
    }
    const std::size_t last = is_kept(w.device) ? limit : std::min(limit, last_[at(w.device)] + 1);
    double left = seconds(w.host);
    w.gap = w.begin + 1;
    while (w.gap < last) left = hide(w.gap++, left);
    while (left > 0 && w.gap < limit && has_room(w.gap, w.device)) {
      live_[w.gap] += s_.types[at(w.device)].nbytes();
      left = hide(w.gap++, left);
    }
    written_[w.host] = w.gap;
  }
  // An argument or result is there all the time.
  bool is_kept(Var v) const {
    return std::find(s_.program->in.begin(), s_.program->in.end(), v) != s_.program->in.end() ||
           std::any_of(s_.outputs.begin(), s_.outputs.end(),
                       [&](const View& o) { return o.root == v; });
  }
  void spread(Read& r) {
    r.gap = r.from = std::min(first_[at(r.device)], fixed_.size());
    const auto written = written_.find(r.host);  // else a loop has written it, or the caller
    const std::size_t limit = written != written_.end()    ? written->second
                              : first_[at(r.host)] == none ? 0
                                                           : first_[at(r.host)] + 1;
    double left = seconds(r.host);
    while (left > 0 && r.from > limit && has_room(r.from - 1, r.device)) {
      live_[--r.from] += s_.types[at(r.device)].nbytes();
      left = hide(r.from, left);
    }
  }

  std::vector<std::size_t> order() const {
    std::vector<std::vector<std::size_t>> ends(fixed_.size() + 1), begins(fixed_.size() + 1),
        reads(fixed_.size() + 1);
    for (const Write& w : writes_) ends[w.gap].push_back(w.end_step);
    for (const Read& r : reads_) {
      begins[r.from].push_back(r.begin_step);
      reads[r.gap].push_back(r.end_step);
    }
    std::vector<std::size_t> out;
    for (std::size_t g = 0; g <= fixed_.size(); ++g) {
      for (const auto* list : {&ends[g], &begins[g], &reads[g]})
        out.insert(out.end(), list->begin(), list->end());
      if (g < fixed_.size()) out.push_back(fixed_[g]);
    }
    return out;
  }

  const Schedule& s_;
  const MemoryRequest& r_;
  double speed_;
  std::size_t budget_ = 0;
  std::vector<std::size_t> fixed_;         // steps
  std::vector<double> free_;               // seconds of each that hide nothing yet
  std::vector<std::size_t> live_;          // bytes while each runs
  std::vector<std::size_t> first_, last_;  // fixed steps that use a root
  std::vector<Write> writes_;
  std::vector<Read> reads_;
  std::map<Var, std::size_t> written_;  // gap where a value is on the host
};

}  // namespace

bool has_transfers(const Schedule& s) {
  return std::any_of(s.steps.begin(), s.steps.end(), [](const Step& step) {
    return std::holds_alternative<TransferStep>(step.what);
  });
}

std::vector<std::size_t> transfer_order(const Schedule& s, const MemoryRequest& r, double allowed) {
  return Spreader(s, r, allowed).run();
}

}  // namespace reprise::plan
