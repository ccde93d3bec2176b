// Sets of nodes as words of bits, many of them side by side in one list.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::budget {

using Word = std::uint64_t;

inline std::size_t words_for(int nodes) { return (static_cast<std::size_t>(nodes) + 63) / 64; }
inline bool has(const Word* set, int v) { return set[v >> 6] >> (v & 63) & 1; }
inline void insert(Word* set, int v) { set[v >> 6] |= Word{1} << (v & 63); }
inline void erase(Word* set, int v) { set[v >> 6] &= ~(Word{1} << (v & 63)); }

// Calls visit(v) for the members, ascending, until it returns false.
template <class Visit>
void each_until(const Word* set, std::size_t words, const Visit& visit) {
  for (std::size_t w = 0; w < words; ++w) {
    for (Word bits = set[w]; bits != 0; bits &= bits - 1) {
      if (!visit(static_cast<int>(w * 64) + std::countr_zero(bits))) return;
    }
  }
}
template <class Visit>
void each(const Word* set, std::size_t words, const Visit& visit) {
  each_until(set, words, [&](int v) {
    visit(v);
    return true;
  });
}
template <class Visit>
void each_descending(const Word* set, std::size_t words, const Visit& visit) {
  for (std::size_t w = words; w-- > 0;) {
    for (Word bits = set[w]; bits != 0;) {
      const int bit = 63 - std::countl_zero(bits);
      bits &= ~(Word{1} << bit);
      visit(static_cast<int>(w * 64) + bit);
    }
  }
}

inline bool is_subset(const Word* a, const Word* b, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if (a[w] & ~b[w]) return false;
  }
  return true;
}

}  // namespace reprise::budget
