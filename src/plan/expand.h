// Large draws of random bits, positions of extremes, products of several dtypes and small windows,
// written as operations that fuse or compile.
//
//   expand:  random_bits keys   =>   threefry_bits key0 key1 position
//            argmax x           =>   min of the positions where x is the max
//            dot_general x:f32 y:bf16     =>   dot_general x (convert y)
//            polynomial x c0 c1 ...       =>   its products and sums
//            reshape[dimensions=d] x      =>   reshape (transpose x)
//            reduce_window_max x          =>   max of the window's elements, strided slices of x
//            select_and_scatter_add c x   =>   for each element of x the sum of c over the windows
//                                              that select it
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program expand(const Program&);

}  // namespace reprise::plan
