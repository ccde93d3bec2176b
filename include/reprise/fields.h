// The members of a plain struct as a tuple of references, without a word from who wrote the struct.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace reprise::tree {

struct AnyField {
  template <class T>
  operator T() const;  // NOLINT: only counted, never defined
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField{})...}; };
}
template <class T, std::size_t N = 0>
constexpr std::size_t count_fields() {
  static_assert(N <= 32, "a plain struct with more than 32 members needs REPRISE_FIELDS");
  if constexpr (!takes<T>(std::make_index_sequence<N + 1>{})) {
    return N;
  } else {
    return count_fields<T, N + 1>();
  }
}

template <class T>
auto aggregate_fields(T& t) {
  constexpr std::size_t count = count_fields<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (count == 0) { return std::tie(); }
  else if constexpr (count == 1) { auto& [a] = t; return std::tie(a); }
  else if constexpr (count == 2) { auto& [a, b] = t; return std::tie(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = t; return std::tie(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = t; return std::tie(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = t; return std::tie(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = t; return std::tie(a, b, c, d, e, f); }
  else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = t;
    return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = t;
    return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = t;
    return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  else if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q); }
  else if constexpr (count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r); }
  else if constexpr (count == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s); }
  else if constexpr (count == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u); }
  else if constexpr (count == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v); }
  else if constexpr (count == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w); }
  else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x); }
  else if constexpr (count == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y); }
  else if constexpr (count == 25) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z); }
  else if constexpr (count == 26) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z,
        aa); }
  else if constexpr (count == 27) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab); }
  else if constexpr (count == 28) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab,
        ac] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab, ac); }
  else if constexpr (count == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab, ac,
        ad] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab, ac, ad); }
  else if constexpr (count == 30) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab, ac,
        ad, ae] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab, ac, ad, ae); }
  else if constexpr (count == 31) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab, ac,
        ad, ae, af] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab, ac, ad, ae, af); }
  else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa, ab, ac,
        ad, ae, af, ag] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, u, v, w, x, y, z, aa,
        ab, ac, ad, ae, af, ag); }
  // clang-format on
}

}  // namespace reprise::tree
#pragma GCC visibility pop
