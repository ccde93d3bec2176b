// Large draws of random bits, positions of extremes and small windows, written as operations that fuse.
//
//   expand:  random_bits keys   =>   threefry_bits key0 key1 position
//            argmax x           =>   min of the positions where x is the max
//            reduce_window_max x          =>   max of the window's elements, each a strided slice of x
//            select_and_scatter_add c x   =>   for each element of x the sum of c over the windows that select it
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program expand(const Program&);

}  // namespace reprise::plan
