// oneDNN's interface, where its versions 2 and 3 differ, and what all its primitives here have in
// common. Who names a primitive includes this and not <dnnl.hpp>.
#pragma once

#include <dnnl.hpp>

#include <string_view>

namespace reprise::codegen {

// Version 3 has no descriptors of operations: their arguments go to the primitive's own.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attributes,
                                            const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, engine};
#endif
}

// Of what computes a gradient of `forward`.
template <class Primitive, class Forward, class... Arguments>
typename Primitive::primitive_desc describe_gradient(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attributes,
                                                     const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., forward, attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, engine, forward};
#endif
}

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& layout) {
#if DNNL_VERSION_MAJOR >= 3
  return layout.get_dims();
#else
  return layout.dims();
#endif
}

// Version 2 writes zeros to the padding of the layout, if it has some, version 3 leaves that to who
// writes the rest.
inline bool set_bytes(const dnnl::memory& memory, void* bytes,
                      [[maybe_unused]] const dnnl::stream& stream) noexcept {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_memory_set_data_handle(memory.get(), bytes) == dnnl_success;
#else
  return dnnl_memory_set_data_handle_v2(memory.get(), bytes, stream.get()) == dnnl_success;
#endif
}

// All the memory it takes is its scratchpad, which is planned. The library's gemm allocates by
// itself, and its reference code is slower than evaluation: neither is used. Names are all that
// tells.
template <class Desc>
bool keeps_to_scratchpad(const Desc& desc) {
  const std::string_view name = desc.impl_info_str();
  return name.find("gemm:") == name.npos && name.find("ref") == name.npos;
}

inline dnnl::primitive_attr planned_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace reprise::codegen
