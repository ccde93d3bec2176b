// SHA-1, which Linen hashes module paths with (not for secrets).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace reprise::nn::detail {

std::array<std::uint32_t, 5> sha1(std::string_view bytes);

}  // namespace reprise::nn::detail
