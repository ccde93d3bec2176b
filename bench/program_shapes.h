// Programs of many sizes by their shape: chains, fans and nests. What compiling each costs per
// equation must not grow with its size (bench/compile_time.cpp measures seconds,
// tests/runtime/work_test.cpp counts).
#pragma once

#include "program/trace.h"
#include "reprise/reprise.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::shapes {

inline const Type vector4{float32, {4}}, matrix{float32, {4, 4}}, large{float32, {512, 512}};

struct ProgramShape {
  const char* name;
  const char* what;
  std::vector<int> sizes;
  std::function<Types(int)> arguments;
  std::function<Arrays(const Arrays&, int)> function;
};

inline Types one_vector(int) { return {vector4}; }

inline Array chained_sines(Array x, int n) {
  for (int i = 0; i < n; ++i) x = sin(x);
  return x;
}

inline Array nested_cond(const Array& x, int depth) {
  if (depth == 0) return sin(x);
  const Array chosen = greater(sum(x), 0.0);
  return cond(
      chosen, [depth](Array y) { return nested_cond(y, depth - 1) * 2.0; },
      [](Array y) { return cos(y); }, x);
}

inline Array nested_scan(const Array& x, int depth) {
  if (depth == 0) return sin(x);
  const auto body = [depth](Array c, None) { return std::pair{nested_scan(c, depth - 1), none}; };
  return scan(body, x, none, {.length = 2}).first;
}

inline Array nested_checkpoint(const Array& x, int depth) {
  if (depth == 0) return sin(x);
  return checkpoint([depth](Array y) { return nested_checkpoint(sin(y), depth - 1); })(x);
}

// The gradient of the sum of f, which takes one array.
inline Arrays gradient(const std::function<Array(Array)>& f, const Arrays& x) {
  return {grad([&f](Array y) { return sum(f(y)); })(x[0])};
}

inline Arrays layers(const Arrays& x, int n) {
  const auto loss = [n](const Array& y, const std::vector<Array>& w) {
    Array h = y;
    for (int i = 0; i < n; ++i) h = tanh(matmul(h, w[static_cast<std::size_t>(i)]));
    return sum(h);
  };
  const std::vector<Array> w(x.begin() + 1, x.end());
  return grad([&](std::vector<Array> p) { return loss(x[0], p); })(w);
}

inline Array sum_of_pairs(std::vector<Array> all) {
  while (all.size() > 1) {
    std::vector<Array> half;
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) half.push_back(all[i] + all[i + 1]);
    if (all.size() % 2 == 1) half.push_back(all.back());
    all = std::move(half);
  }
  return all[0];
}

inline std::vector<ProgramShape> chains() {
  const std::vector<int> sizes{1000, 10000, 100000};
  return {
      {"elementwise", "n sines, one after the other", sizes, one_vector,
       [](const Arrays& x, int n) { return Arrays{chained_sines(x[0], n)}; }},
      {"sine_gradient",
       "the gradient of n sines",
       {125, 250, 500, 2000, 5000, 50000},
       one_vector,
       [](const Arrays& x, int n) {
         return gradient([n](Array y) { return chained_sines(y, n); }, x);
       }},
      {"large_sines",
       "the gradient of n sines on 512 x 512",
       {125, 250, 500, 1000},
       [](int) { return Types{large}; },
       [](const Arrays& x, int n) {
         return gradient([n](Array y) { return chained_sines(y, n); }, x);
       }},
      {"products", "n products, one after the other", sizes,
       [](int) {
         return Types{matrix, matrix};
       },
       [](const Arrays& x, int n) {
         Array y = x[0];
         for (int i = 0; i < n; ++i) y = matmul(y, x[1]);
         return Arrays{y};
       }},
      {"deep", "the gradient of layers tanh(x W), n equations", sizes,
       [](int n) { return Types(static_cast<std::size_t>(n / 8 + 1), matrix); },
       [](const Arrays& x, int n) { return layers(x, n / 8); }},
  };
}

inline std::vector<ProgramShape> fans() {
  const std::vector<int> sizes{1000, 10000, 100000};
  return {
      {"wide", "n / 3 arguments, each through two sines, added", sizes,
       [](int n) { return Types(static_cast<std::size_t>(n / 3), vector4); },
       [](const Arrays& x, int) {
         std::vector<Array> all;
         for (const Array& a : x) all.push_back(sin(sin(a)));
         return Arrays{sum_of_pairs(std::move(all))};
       }},
      {"wide_products", "n / 2 products of one array, added", sizes,
       [](int) {
         return Types{matrix, matrix};
       },
       [](const Arrays& x, int n) {
         std::vector<Array> all;
         for (int i = 0; i < n / 2; ++i)
           all.push_back(matmul(x[0] * static_cast<float>(i % 8), x[1]));
         return Arrays{sum_of_pairs(std::move(all))};
       }},
      {"outputs", "n outputs of one argument", sizes, one_vector,
       [](const Arrays& x, int n) {
         Arrays out;
         for (int i = 0; i < n; ++i) out.push_back(x[0] * static_cast<float>(i));
         return out;
       }},
      {"readers", "one value with n / 2 readers, added one after the other", sizes, one_vector,
       [](const Arrays& x, int n) {
         const Array v = sin(x[0]);
         Array sum = v;
         for (int i = 0; i < n / 2; ++i) sum = sum + v * static_cast<float>(i);
         return Arrays{sum};
       }},
      {"reader_gradient",
       "the gradient of that",
       {1000, 10000, 50000},
       one_vector,
       [](const Arrays& x, int n) {
         const auto f = [n](const Array& y) {
           const Array v = sin(y);
           Array sum = v;
           for (int i = 0; i < n / 4; ++i) sum = sum + sin(v * static_cast<float>(i));
           return sum;
         };
         return gradient(f, x);
       }},
  };
}

inline std::vector<ProgramShape> nests() {
  return {
      {"cond",
       "n conditions, one in the other",
       {8, 16, 32, 64},
       one_vector,
       [](const Arrays& x, int n) { return Arrays{nested_cond(x[0], n)}; }},
      {"cond_gradient",
       "the gradient of that",
       {8, 16, 32, 64},
       one_vector,
       [](const Arrays& x, int n) {
         return gradient([n](Array y) { return nested_cond(y, n); }, x);
       }},
      {"cond_vmap",
       "the map of that over rows",
       {8, 16, 32, 64},
       [](int) { return Types{matrix}; },
       [](const Arrays& x, int n) {
         return Arrays{vmap([n](Array y) { return nested_cond(y, n); })(x[0])};
       }},
      {"scan",
       "n loops, one in the other",
       {4, 8, 16},
       one_vector,
       [](const Arrays& x, int n) { return Arrays{nested_scan(x[0], n)}; }},
      {"scan_gradient",
       "the gradient of that",
       {4, 8, 16},
       one_vector,
       [](const Arrays& x, int n) {
         return gradient([n](Array y) { return nested_scan(y, n); }, x);
       }},
      {"checkpoint",
       "n checkpoints, one in the other",
       {125, 250, 500, 1000},
       one_vector,
       [](const Arrays& x, int n) { return Arrays{nested_checkpoint(x[0], n)}; }},
      {"checkpoint_gradient",
       "the gradient of that",
       {125, 250, 500, 1000},
       one_vector,
       [](const Arrays& x, int n) {
         return gradient([n](Array y) { return nested_checkpoint(y, n); }, x);
       }},
  };
}

inline std::vector<ProgramShape> all() {
  std::vector<ProgramShape> list;
  for (const auto& family : {chains(), fans(), nests()})
    list.insert(list.end(), family.begin(), family.end());
  return list;
}

}  // namespace reprise::shapes
