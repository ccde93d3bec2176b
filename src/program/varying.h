// Values that differ between ranks: `Type::varying` says along which axes of a mesh.
#pragma once

#include "base/mesh.h"
#include "program/params.h"

namespace reprise {

// x as a value that varies over these axes, too: a pvary equation where it does not yet
// (ops/collective.cpp).
Array with_varying(const Array& x, const MeshAxes* axes);
Arrays with_varying(const Arrays& x, const MeshAxes* axes);
Arrays with_common_varying(const Arrays& x);  // over the axes of any of them

}  // namespace reprise
