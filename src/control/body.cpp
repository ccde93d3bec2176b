#include "control/body.h"

#include "program/effects.h"

#include <limits>

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
std::vector<bool> part_of(const std::vector<bool>& mask, std::size_t begin, std::size_t end) {
  return {mask.begin() + static_cast<std::ptrdiff_t>(begin),
          mask.begin() + static_cast<std::ptrdiff_t>(end)};
}
Arrays concat(const Arrays& a, const Arrays& b) {
  Arrays all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}
Arrays slice_of(const Arrays& xs, std::size_t begin, std::size_t end) {
  return {xs.begin() + static_cast<std::ptrdiff_t>(begin),
          xs.begin() + static_cast<std::ptrdiff_t>(end)};
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
    fail<TypeError>(op, ": wrong number of operands, got ", in.size() - first, " for ",
                    body.in.size());
  }
  for (std::size_t i = 0; i < body.in.size(); ++i) {
    const Type &got = in[first + i], &wanted = body.type(body.in[i]);
    if (got.dtype != wanted.dtype || got.shape != wanted.shape) {
      fail<TypeError>(op, ": operand ", i, " must match the body, got ", got, " for ", wanted);
    }
  }
}

void check_decision(const char* op, const Type& decides, const Program& body) {
  if (decides.varying == nullptr || !effects_of(body).is_shared) return;
  fail_with_hint<TypeError>(
      "decide by a value that is the same on all ranks, as psum, pmax or pmin make it", op,
      ": a predicate that varies over the mesh must not decide about a collective, got ", decides);
}

std::int64_t count_or_none(const Params& p, const char* key) {
  return p.find(key) == nullptr ? 0 : p.get<std::int64_t>(key);
}
Params with_budget(Params p, std::int64_t checkpoints, std::int64_t disk_checkpoints) {
  if (checkpoints > 0) p = p.with("checkpoints", checkpoints);
  return disk_checkpoints > 0 ? p.with("disk_checkpoints", disk_checkpoints) : p;
}
// A program read from text may have them wrong. Those on disk come on top of those in memory.
void check_budget(const char* op, const Params& p, std::optional<std::int64_t> most) {
  if (p.find("checkpoints") == nullptr && p.find("disk_checkpoints") == nullptr) return;
  const std::int64_t memory = count_or_none(p, "checkpoints"),
                     disk = count_or_none(p, "disk_checkpoints");
  const std::int64_t limit = most.value_or(std::numeric_limits<std::int32_t>::max());
  if (memory >= 1 && memory <= limit && disk >= 0 && disk <= limit - memory) return;
  fail<TypeError>(op, ": the number of checkpoints must be from 1 to ",
                  most ? "the length" : "2^31", ", got ", memory, " and ", disk, " on disk");
}

}  // namespace reprise
