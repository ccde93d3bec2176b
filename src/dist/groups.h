// Communicators of MPI, one for each group of ranks.
#pragma once

#include "reprise/communicator.h"

#include <mpi.h>

#include <map>
#include <vector>

namespace reprise::dist {

// All ranks ask for their groups in the same order: making them is a collective itself.
class Groups {
 public:
  explicit Groups(MPI_Comm world) : world_(world) {}
  bool has(const RankGroup& group) const { return made_.count(group.ranks) != 0; }
  MPI_Comm of(const RankGroup&);  // waits for all ranks if it is new
  void release();

 private:
  MPI_Comm world_;
  std::map<std::vector<std::int64_t>, MPI_Comm> made_;
};

}  // namespace reprise::dist
