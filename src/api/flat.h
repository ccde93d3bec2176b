// What the thin API functions share: types of arguments, tracing a Callee, finished values.
#pragma once

#include "program/trace.h"
#include "reprise/callable.h"

namespace reprise {

Types leaf_types(const Arrays&);
// `values`: the function may ask for numbers, which come from these arguments.
Traced trace_callee(const detail::Callee&, const char* transform, const Types& in,
                    const Arrays* values = nullptr);
// Results handed to the user: a literal becomes an array unless it belongs to an open trace.
Array finished(const Array&);
Arrays finished(Arrays);

}  // namespace reprise
