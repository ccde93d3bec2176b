// Convolutions that the library has no code for, written as operations that compile.
//
//   conv_general_dilated x:bf16 k   =>   convert (conv_general_dilated (convert x) (convert k)),
//   computed in f32 conv_general_dilated x:f64 k    =>   the sum over the window's places of
//   (strided slice of x) * (matrix of k)
//
// A convolution whose result has fewer places than its window, as in gradients of kernels, becomes
// one product for each of those. One with very many places of both becomes a loop over the
// window's.
#pragma once

#include "program/program.h"

namespace reprise::codegen {

Program rewrite_convolutions(const Program&);

}  // namespace reprise::codegen
