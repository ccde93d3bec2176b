// Aligned memory for array elements, counted so that anyone can ask what is alive.
#pragma once

#include <cstddef>
#include <memory>

namespace reprise {

inline constexpr std::size_t buffer_alignment = 64;

// Uninitialised bytes, 64-byte aligned; throws RuntimeError when the system has none left.
std::shared_ptr<std::byte> allocate_buffer(std::size_t bytes);

// The same for who gives them back himself: elements, which count as live, with room for something
// else beside them.
void* allocate_elements(std::size_t elements, std::size_t beside);
void free_elements(void* memory, std::size_t elements, std::size_t beside) noexcept;

// Gives freed blocks that wait for reuse back to the system.
void release_free_blocks();

}  // namespace reprise
