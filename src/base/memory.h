// Aligned memory for array elements, counted so that anyone can ask what is alive.
#pragma once

#include <cstddef>
#include <memory>

namespace reprise {

inline constexpr std::size_t buffer_alignment = 64;

// Uninitialised bytes, 64-byte aligned; throws RuntimeError when the system has none left.
std::shared_ptr<std::byte> allocate_buffer(std::size_t bytes);

}  // namespace reprise
