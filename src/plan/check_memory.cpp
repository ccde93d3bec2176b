#include "plan/check_memory.h"

#include <algorithm>

#include "base/text.h"

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
  const auto in_block = [](const Place& p) { return p.region == Region::arena || p.region == Region::results; };
  for (std::size_t v = 0; v < all.size(); ++v) {
    if (!written[v] || !in_block(plan.places[v]) || s.types[v].nbytes() == 0) continue;
    all[v].name = str(s.types[v], " v", v);
    all[v].place = plan.places[v];
    all[v].bytes = s.types[v].nbytes();
    out.push_back(all[v]);
  }
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    if (plan.scratch_bytes[i] > 0) out.push_back({str("scratch of step ", i), plan.scratch[i], plan.scratch_bytes[i], i, i});
  }
  return out;
}

}  // namespace

std::optional<std::string> overlap_in(const Schedule& s, const MemoryPlan& plan) {
  std::vector<Lifetime> all = lifetimes_of(s, plan);
  for (const Lifetime& l : all) {
    const std::size_t size = l.place.region == Region::arena ? plan.arena_bytes : plan.result_bytes;
    if (l.end() > size) return str(l.name, " ends at ", l.end(), ", behind its block of ", size, " bytes");
  }
  std::sort(all.begin(), all.end(), [](const Lifetime& a, const Lifetime& b) { return a.place.offset < b.place.offset; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size() && all[j].place.offset < all[i].end(); ++j) {
      const Lifetime& a = all[i].first <= all[j].first ? all[i] : all[j];
      const Lifetime& b = all[i].first <= all[j].first ? all[j] : all[i];
      if (a.place.region != b.place.region || a.last < b.first) continue;
      const bool takes_over = a.last == b.first && a.first < b.first && a.place.offset == b.place.offset && a.bytes == b.bytes &&
                              std::holds_alternative<Kernel>(s.steps[b.first].what);
      if (!takes_over) return str(a.name, " and ", b.name, " share bytes while both live");
    }
  }
  return std::nullopt;
}

}  // namespace reprise::plan
