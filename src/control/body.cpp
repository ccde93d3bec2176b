#include "control/body.h"

namespace reprise {

std::vector<bool> nonzero_mask(const Tangents& ts) {
  std::vector<bool> mask;
  for (const Tangent& t : ts) mask.push_back(t.has_value());
  return mask;
}
std::vector<bool> mapped_mask(const Axes& axes) {
  std::vector<bool> mask;
  for (const Axis& a : axes) mask.push_back(a.has_value());
  return mask;
}
Arrays concat(const Arrays& a, const Arrays& b) {
  Arrays all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}
Arrays slice_of(const Arrays& xs, std::size_t begin, std::size_t end) {
  return {xs.begin() + static_cast<std::ptrdiff_t>(begin), xs.begin() + static_cast<std::ptrdiff_t>(end)};
}
Arrays nonzero_only(const Tangents& ts) {
  Arrays some;
  for (const Tangent& t : ts) {
    if (t) some.push_back(*t);
  }
  return some;
}
Tangents spread(const std::vector<bool>& mask, const Arrays& some, std::size_t first) {
  Tangents all;
  for (bool m : mask) all.push_back(m ? Tangent(some[first++]) : std::nullopt);
  return all;
}
void check_operands(const char* op, const Program& body, const Types& in, std::size_t first) {
  if (in.size() - first != body.in.size()) {
    fail<TypeError>(op, ": wrong number of operands, got ", in.size() - first, " for ", body.in.size());
  }
  for (std::size_t i = 0; i < body.in.size(); ++i) {
    const Type &got = in[first + i], &wanted = body.type(body.in[i]);
    if (got.dtype != wanted.dtype || got.shape != wanted.shape) {
      fail<TypeError>(op, ": operand ", i, " must match the body, got ", got, " for ", wanted);
    }
  }
}

}  // namespace reprise
