// The functions that generated code calls, by the names it calls them.
#pragma once

#include "base/dtype.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::codegen {

// glibc's libmvec is present. It has all functions that are used from glibc 2.35 on, on arm64 2.40.
bool has_libmvec();
bool is_in_libmvec(const std::string& symbol);

// The libmvec function of a full register: ("tanh", f32, 1, 64) gives "_ZGVeN16v_tanhf".
std::string libmvec_symbol(std::string_view function, Dtype, std::size_t arity,
                           unsigned vector_bytes);
// A function of ours that calls a scalar one for n lanes: void f(const T* x, T* y, int64 n) or
// void f(const T* a, const T* b, T* y, int64 n), where y may be x or a. Never throws.
std::string lane_symbol(std::string_view function, Dtype);

// All of them with addresses, and the functions of libm that the compiler itself may call.
const std::vector<std::pair<std::string, void*>>& runtime_symbols();

}  // namespace reprise::codegen
