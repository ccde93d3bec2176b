#include "nn/sha1.h"

#include <bit>
#include <string>

namespace reprise::nn::detail {
namespace {

using Words = std::array<std::uint32_t, 5>;

// The message, a one bit, zeros, and its length in bits, as a multiple of 64 bytes.
std::string padded(std::string_view bytes) {
  std::string text(bytes);
  text.push_back('\x80');
  while (text.size() % 64 != 56) text.push_back('\0');
  const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(bits >> shift));
  return text;
}

void add_block(Words& hash, const char* block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i < 64; ++i) {
    w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(block[i]);
  }
  for (std::size_t i = 16; i < 80; ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = hash;
  for (std::size_t i = 0; i < 80; ++i) {
    std::uint32_t f = b ^ c ^ d, k = i < 40 ? 0x6ED9EBA1 : 0xCA62C1D6;
    if (i < 20) {
      f = (b & c) | (~b & d), k = 0x5A827999;
    } else if (i >= 40 && i < 60) {
      f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
    }
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  hash = {hash[0] + a, hash[1] + b, hash[2] + c, hash[3] + d, hash[4] + e};
}

}  // namespace

Words sha1(std::string_view bytes) {
  Words hash = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::string text = padded(bytes);
  for (std::size_t i = 0; i < text.size(); i += 64) add_block(hash, text.data() + i);
  return hash;
}

}  // namespace reprise::nn::detail
