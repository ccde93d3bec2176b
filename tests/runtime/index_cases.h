// Gathers and scatters of all kinds to compare compiled code with the evaluator: named ones, and
// any number of random ones.
#pragma once

#include "array/access.h"
#include "base/dtype.h"
#include "ops/lax.h"
#include <reprise/reprise.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace reprise {

inline const std::vector<Dtype> element_dtypes = {bool_,    int8,    int16,  int32,  int64,
                                                  uint8,    uint16,  uint32, uint64, float16,
                                                  bfloat16, float32, float64};
inline const std::vector<Dtype> index_dtypes = {int8,  int16,  int32,  int64,
                                                uint8, uint16, uint32, uint64};
inline const std::vector<lax::GatherScatterMode> index_modes = {
    lax::GatherScatterMode::clip, lax::GatherScatterMode::fill_or_drop,
    lax::GatherScatterMode::promise_in_bounds};

struct IndexCase {
  std::string name;
  Shape operand, indices;  // with the index vector
  lax::GatherDimensionNumbers numbers;
  lax::Ints sizes;
};

inline Shape windows_of(const IndexCase& c) {
  Shape out(c.indices.begin(), c.indices.end() - 1);
  std::size_t next = 0;
  for (std::size_t d = 0; d < c.operand.size(); ++d) {
    const auto has = [&](const lax::Ints& dims) {
      return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
    };
    if (has(c.numbers.collapsed_slice_dims) || has(c.numbers.operand_batching_dims)) continue;
    out.insert(out.begin() + c.numbers.offset_dims[next++], c.sizes[d]);
  }
  return out;
}

// Large enough to be divided, odd sizes, windows in front, behind and between.
inline std::vector<IndexCase> index_cases() {
  return {
      {"embedding", {37, 96}, {411, 1}, {{1}, {0}, {0}}, {1, 96}},
      {"embedding of wide rows", {9, 1037}, {67, 1}, {{1}, {0}, {0}}, {1, 1037}},
      {"rows of three", {300, 3}, {9001, 1}, {{1}, {0}, {0}}, {1, 3}},
      {"columns", {71, 45}, {603, 1}, {{0}, {1}, {1}}, {71, 1}},
      {"scalars", {501}, {40007, 1}, {{}, {0}, {0}}, {1}},
      {"points", {31, 17}, {23, 101, 2}, {{}, {0, 1}, {0, 1}}, {1, 1}},
      {"points, index swapped", {31, 17}, {777, 2}, {{}, {0, 1}, {1, 0}}, {1, 1}},
      {"along the last axis", {211, 19}, {211, 33, 1}, {{}, {1}, {1}, {0}, {0}}, {1, 1}},
      {"along the first axis", {19, 211}, {33, 211, 1}, {{}, {0}, {0}, {1}, {1}}, {1, 1}},
      {"batched rows", {5, 40, 24}, {5, 77, 1}, {{2}, {1}, {1}, {0}, {0}}, {1, 1, 24}},
      {"boxes", {60, 70}, {29, 2}, {{1, 2}, {}, {0, 1}}, {13, 21}},
      {"boxes that share an axis", {60, 70}, {29, 1}, {{0, 1}, {}, {1}}, {60, 21}},
      {"one large box", {70, 33, 20}, {3}, {{0, 1, 2}, {}, {0, 1, 2}}, {60, 31, 17}},
      {"one long run", {90001}, {1}, {{0}, {}, {0}}, {70003}},
      {"overlapping runs", {5000}, {400, 1}, {{1}, {}, {0}}, {129}},
      {"middle axis", {6, 50, 40}, {81, 1}, {{0, 2}, {1}, {1}}, {6, 1, 40}},
      {"part of the rows", {50, 40}, {300, 1}, {{1}, {0}, {0}}, {1, 17}},
      {"part of the columns first", {40, 50}, {300, 1}, {{0}, {1}, {1}}, {17, 1}},
      {"no windows", {50, 40}, {0, 1}, {{1}, {0}, {0}}, {1, 40}},
      {"empty windows", {50, 40}, {7, 1}, {{1}, {0}, {0}}, {1, 0}},
      {"no index", {12, 40}, {5, 0}, {{1, 2}, {}, {}}, {12, 40}},
  };
}

// Any dimension may be collapsed, batched, indexed, part of a window or several of these.
inline IndexCase random_index_case(std::mt19937& random) {
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  IndexCase c;
  const auto size = [&] { return pick(0, 3) == 0 ? pick(1, 60) : pick(1, 7); };
  Shape batch;
  for (std::int64_t n = pick(0, 2); n > 0; --n) batch.push_back(size());
  std::int64_t windows = 0;
  lax::Ints free_batch(batch.size());
  std::iota(free_batch.begin(), free_batch.end(), 0);
  std::shuffle(free_batch.begin(), free_batch.end(), random);
  for (std::int64_t d = 0, rank = pick(1, 4); d < rank; ++d) {
    const std::int64_t kind = pick(0, 3);
    if (kind == 0 && !free_batch.empty()) {
      c.numbers.operand_batching_dims.push_back(d);
      c.numbers.start_indices_batching_dims.push_back(free_batch.back());
      c.operand.push_back(batch[static_cast<std::size_t>(free_batch.back())]);
      free_batch.pop_back();
      c.sizes.push_back(1);
      continue;
    }
    c.operand.push_back(size());
    if (pick(0, 2) > 0) c.numbers.start_index_map.push_back(d);
    if (kind == 1) {
      c.numbers.collapsed_slice_dims.push_back(d);
      c.sizes.push_back(1);
    } else {
      c.sizes.push_back(kind == 2 ? c.operand.back() : pick(1, c.operand.back()));
      ++windows;
    }
  }
  std::shuffle(c.numbers.start_index_map.begin(), c.numbers.start_index_map.end(), random);
  lax::Ints places(static_cast<std::size_t>(windows) + batch.size());
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), random);
  c.numbers.offset_dims.assign(places.begin(), places.begin() + windows);
  std::sort(c.numbers.offset_dims.begin(), c.numbers.offset_dims.end());
  c.indices = batch;
  c.indices.push_back(static_cast<std::int64_t>(c.numbers.start_index_map.size()));
  c.name = str("operand ", to_string(c.operand), " indices ", to_string(c.indices), " sizes ",
               python_tuple(c.sizes), " offset_dims ", python_tuple(c.numbers.offset_dims),
               " collapsed ", python_tuple(c.numbers.collapsed_slice_dims), " map ",
               python_tuple(c.numbers.start_index_map), " batching ",
               python_tuple(c.numbers.operand_batching_dims), " of ",
               python_tuple(c.numbers.start_indices_batching_dims));
  return c;
}

// Small numbers of any dtype, negative ones and zeros of both signs among them.
inline Array random_elements(std::mt19937& random, const Shape& shape, Dtype d) {
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  for (double& v : values)
    v = d == bool_ ? random() % 2
                   : static_cast<double>(random() % 4001) / 64 - (is_integer(d) ? 0 : 30);
  if (is_floating(d)) {
    for (std::size_t i = 0; i < values.size(); i += 7) values[i] = i % 2 == 0 ? -0.0 : 0.0;
  }
  return array(values, shape).astype(d);
}
// Mostly inside, some before and behind.
inline Array random_indices(std::mt19937& random, const IndexCase& c, Dtype d) {
  const std::size_t components = c.numbers.start_index_map.size();
  std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(c.indices)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto dim = static_cast<std::size_t>(c.numbers.start_index_map[i % components]);
    const std::int64_t most = std::max<std::int64_t>(c.operand[dim] - c.sizes[dim], 0);
    values[i] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most + 1));
    if (random() % 8 == 0) values[i] += random() % 2 == 0 ? most + 1 : -most - 1;
  }
  return array(values, c.indices).astype(d);
}

// The same bytes; NaNs may differ in theirs.
inline bool same_elements(const Array& got, const Array& expected) {
  if (got.type() != expected.type()) return false;
  const auto n = static_cast<std::size_t>(got.size());
  if (std::memcmp(content(got).elements, content(expected).elements, n * itemsize(got.dtype())) ==
      0)
    return true;
  if (!is_floating(got.dtype())) return false;
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  for (std::size_t i = 0; i < n; ++i) {
    const bool same = a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
    if (!same && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

}  // namespace reprise
