// Large draws of random bits and small windows, written as elementwise operations that fuse.
//
//   expand:  random_bits keys   =>   threefry_bits key0 key1 position
//            reduce_window_max x   =>   max of the window's elements, each a strided slice of x
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program expand(const Program&);

}  // namespace reprise::plan
