#include "remat/recompute.h"

#include "base/dtype.h"
#include "base/location.h"
#include "program/primitive.h"

#include <cstring>
#include <ostream>

namespace reprise {
namespace {

// The first element whose bits differ; size when there is none.
std::int64_t first_difference(const Array& a, const Array& b) {
  const std::size_t size = itemsize(a.dtype());
  const std::byte *x = content(a).elements, *y = content(b).elements;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(x + at, y + at, size) != 0) return i;
  }
  return a.size();
}

bool same_bits(const Array& a, const Array& b) {
  return a.nbytes() == 0 || std::memcmp(content(a).elements, content(b).elements, a.nbytes()) == 0;
}

std::string element_text(const Array& x, std::int64_t i) {
  const std::byte* element =
      content(x).elements + static_cast<std::size_t>(i) * itemsize(x.dtype());
  return to_string(load_literal(x.dtype(), element));
}

std::string difference_text(const Equation& e, const Array& before, const Array& now) {
  const std::int64_t i = first_difference(before, now);
  std::string text = str(e.prim->name, " ", before.type());
  if (const std::string place = to_string(e.at); !place.empty()) text += " from " + place;
  text += str(": was ", element_text(before, i), ", computed again as ", element_text(now, i));
  if (before.ndim() > 0) text += str(" (element ", i, " of ", before.size(), ")");
  return text;
}

}  // namespace

RepeatedValues::RepeatedValues(const Program& p, const Arrays& consts)
    : numbers_(value_numbers(p, consts)), made_by_(p.types.size()), uses_(numbers_.count) {
  for (const Equation& e : p.eqns) {
    for (Var v : e.out) {
      made_by_[static_cast<std::size_t>(v)] = &e;
      if (numbers_.computed[static_cast<std::size_t>(v)])
        ++uses_[numbers_.of[static_cast<std::size_t>(v)]];
    }
  }
}

bool RepeatedValues::wants(Var v) const {
  const auto at = static_cast<std::size_t>(v);
  return numbers_.computed[at] && uses_[numbers_.of[at]] > 1;
}

void RepeatedValues::see(Var v, const Array& value) {
  if (!wants(v)) return;
  const std::size_t number = numbers_.of[static_cast<std::size_t>(v)];
  const auto [it, is_first] = seen_.try_emplace(number, Seen{value, uses_[number] - 1});
  if (is_first) return;
  ++check_.compared;
  Seen& before = it->second;
  if (check_.ok && !same_bits(before.value, value)) {
    check_.ok = false;
    check_.first_difference =
        difference_text(*made_by_[static_cast<std::size_t>(v)], before.value, value);
  }
  if (--before.uses == 0) before.value = Array();
}

std::ostream& operator<<(std::ostream& out, const RecomputeCheck& check) {
  out << "recompute: " << check.compared << (check.compared == 1 ? " value" : " values")
      << " computed again, ";
  if (check.ok) return out << "all equal bit for bit";
  return out << "first difference: " << check.first_difference;
}

}  // namespace reprise
