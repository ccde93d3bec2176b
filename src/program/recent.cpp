#include "program/recent.h"

#include <algorithm>
#include <deque>

namespace reprise {
namespace {

constexpr std::size_t most_programs = 8;

bool holds_programs(const Program& p) {
  return std::any_of(p.eqns.begin(), p.eqns.end(), [](const Equation& e) {
    bool any = false;
    for_each_program(e.params, [&](const ProgramPtr&) { any = true; });
    return any;
  });
}

bool same_place(const Location& a, const Location& b) {
  return a.file == b.file && a.function == b.function && a.line == b.line && a.column == b.column;
}

bool same(const Program& a, const Program& b);

bool same(const Attr& a, const Attr& b) {
  if (const auto* one = std::get_if<ProgramPtr>(&a)) {
    const auto* other = std::get_if<ProgramPtr>(&b);
    return other != nullptr && same(**one, **other);
  }
  if (const auto* several = std::get_if<Programs>(&a)) {
    const auto* others = std::get_if<Programs>(&b);
    return others != nullptr &&
           std::equal(several->begin(), several->end(), others->begin(), others->end(),
                      [](const ProgramPtr& x, const ProgramPtr& y) { return same(*x, *y); });
  }
  return Param{"", a} == Param{"", b};
}

bool same(const Equation& a, const Equation& b) {
  const auto &x = a.params.items(), &y = b.params.items();
  return a.prim == b.prim && a.in == b.in && a.out == b.out && a.phase == b.phase &&
         same_place(a.at, b.at) &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Param& p, const Param& q) {
           return std::string_view(p.key) == q.key && same(p.value, q.value);
         });
}

bool same(const Program& a, const Program& b) {
  return &a == &b || (a.in == b.in && a.num_consts == b.num_consts && a.out == b.out &&
                      a.types == b.types && a.name == b.name && a.arg_names == b.arg_names &&
                      std::equal(a.eqns.begin(), a.eqns.end(), b.eqns.begin(), b.eqns.end(),
                                 [](const Equation& x, const Equation& y) { return same(x, y); }));
}

// The latest first. A thread gives them back at its end; the one that ends the process may need
// them again when objects of the process are destroyed, after its own.
std::deque<ProgramPtr>& kept_by_thread() {
  thread_local std::deque<ProgramPtr>* kept = nullptr;
  if (kept != nullptr) return *kept;
  kept = new std::deque<ProgramPtr>;
  struct Last {
    std::deque<ProgramPtr>*& kept;
    ~Last() {
      delete kept;
      kept = nullptr;
    }
  };
  thread_local const Last last{kept};
  return *kept;
}

}  // namespace

ProgramPtr recent(ProgramPtr p) {
  std::deque<ProgramPtr>& kept = kept_by_thread();
  if (!holds_programs(*p)) return p;  // nothing is derived from the others
  const auto old =
      std::find_if(kept.begin(), kept.end(), [&](const ProgramPtr& k) { return same(*k, *p); });
  if (old != kept.end()) {
    p = *old;
    kept.erase(old);
  }
  kept.push_front(p);
  if (kept.size() > most_programs) kept.pop_back();
  return p;
}

}  // namespace reprise
