// The ranks of this process and meshes of them.
#pragma once

#include "base/mesh.h"
#include "reprise/communicator.h"

namespace reprise {

// A mesh on which this process can run; else a RuntimeError.
void check_mesh(const char* what, MeshPtr mesh);

}  // namespace reprise
