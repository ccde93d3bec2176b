#include "dist/groups.h"

namespace reprise::dist {

MPI_Comm Groups::of(const RankGroup& group) {
  const auto [it, is_new] = made_.try_emplace(group.ranks, MPI_COMM_NULL);
  if (is_new)
    MPI_Comm_split(world_, static_cast<int>(group.ranks.front()), static_cast<int>(group.position),
                   &it->second);
  return it->second;
}

void Groups::release() {
  for (auto& [ranks, made] : made_) MPI_Comm_free(&made);
  made_.clear();
}

}  // namespace reprise::dist
