// Types and reductions of MPI for our dtypes. Halves are added as floats and rounded once per sum of
// two, as MPI knows nothing of them.
#pragma once

#include "reprise/communicator.h"

#include <mpi.h>

namespace reprise::dist {

struct Elements {
  MPI_Datatype type;
  MPI_Op op;
};
Elements elements_of(Dtype, Reduction);
void release_elements();

}  // namespace reprise::dist
