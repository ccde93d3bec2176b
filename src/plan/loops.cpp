#include "plan/loops.h"

#include "base/machine.h"

#include <algorithm>
#include <cmath>

namespace reprise::plan {
namespace {

using machine::item_elements;  // a work item should have at least so many
// summed one after the other, unless that makes too many parts
constexpr std::int64_t rows_in_a_row = 256;

using AllBounds = std::vector<std::vector<Bound>>;

bool any_bound_of(const AllBounds& all, std::size_t loop) {
  return std::any_of(all.begin(), all.end(), [&](const std::vector<Bound>& bounds) {
    return std::any_of(bounds.begin(), bounds.end(),
                       [&](const Bound& b) { return b.loop == loop; });
  });
}
// The loops k - 1 and k become one, which bounds of the outer one bound as well.
void merge_bounds(AllBounds& all, std::size_t k, std::int64_t inner_size) {
  for (std::vector<Bound>& bounds : all) {
    for (Bound& b : bounds) {
      if (b.loop == k - 1) b = {b.loop, b.begin * inner_size, b.end * inner_size};
      if (b.loop >= k) --b.loop;
    }
  }
}

// Neighbouring loops become one where every load and store walks on with one stride.
void merge_loops(Ints& sizes, std::vector<Ints*>& all, AllBounds& bounds, std::size_t begin,
                 std::size_t end) {
  for (std::size_t k = end; k-- > begin + 1;) {
    const bool one = !any_bound_of(bounds, k) &&
                     std::all_of(all.begin(), all.end(),
                                 [&](const Ints* s) { return (*s)[k - 1] == (*s)[k] * sizes[k]; });
    if (!one) continue;
    merge_bounds(bounds, k, sizes[k]);
    sizes[k - 1] *= sizes[k];
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(k));
    for (Ints* s : all) s->erase(s->begin() + static_cast<std::ptrdiff_t>(k - 1));
  }
}

bool is_turned(const Ints& strides, std::size_t along) {
  return strides[along] == 1 && strides.back() != 0 && strides.back() != 1;
}

// The loop over rows along which the most operands and results are turned goes last; without
// reductions any order of these loops will do.
void choose_tiles(Loops& l, const Kernel& k, std::int64_t lanes) {
  l.turned_loads.assign(k.loads.size(), false);
  l.turned_stores.assign(k.stores.size(), false);
  if (k.has_row_reduce || k.has_column_reduce || l.by_columns || l.columns < lanes ||
      k.has_bounds())
    return;
  const auto turned_along = [&](std::size_t d) {
    std::ptrdiff_t n = 0;
    for (std::size_t i = 0; i < k.loads.size(); ++i)
      n += k.loads[i].source == Source::memory && is_turned(l.load_strides[i], d);
    return n + std::count_if(l.store_strides.begin(), l.store_strides.end(),
                             [&](const Ints& s) { return is_turned(s, d); });
  };
  std::size_t chosen = 0;
  std::ptrdiff_t most = 0;
  for (std::size_t d = 0; d < l.outer.size(); ++d) {
    const std::ptrdiff_t n = l.outer[d] >= lanes ? turned_along(d) : 0;
    if (n > most) chosen = d;
    most = std::max(n, most);
  }
  if (most == 0) return;
  const auto to_last = [&](Ints& list) {
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(chosen);
    std::rotate(first, first + 1, list.begin() + static_cast<std::ptrdiff_t>(l.outer.size()));
  };
  for (Ints& s : l.load_strides) to_last(s);
  for (Ints& s : l.store_strides) to_last(s);
  to_last(l.outer);
  const std::size_t last = l.outer.size() - 1;
  for (std::size_t i = 0; i < k.loads.size(); ++i) {
    l.turned_loads[i] = k.loads[i].source == Source::memory && is_turned(l.load_strides[i], last);
  }
  for (std::size_t i = 0; i < k.stores.size(); ++i)
    l.turned_stores[i] = is_turned(l.store_strides[i], last);
  constexpr std::int64_t rows = machine::turned_square;
  l.tile_rows = l.tile_columns = rows;
  l.block = std::min(l.rows, std::max(rows, l.block / rows * rows));
  l.items = ceil_div(l.rows, l.block);
}

// Partial sums of a segment's rows, at most. Many rows are summed in about as many parts as a part
// has rows: one sum after the other would lose digits.
std::int64_t max_chunks(std::int64_t rows) {
  return std::max<std::int64_t>(
      16, static_cast<std::int64_t>(std::sqrt(static_cast<double>(rows)) / 2));
}

void cut_columns(Loops& l, std::int64_t block) {
  l.by_columns = true;
  l.block = block;
  l.items = ceil_div(l.columns, l.block);
}
void cut_rows(Loops& l) {
  l.block =
      std::clamp<std::int64_t>(item_elements / std::max<std::int64_t>(l.columns, 1), 1, l.rows);
  l.items = ceil_div(l.rows, l.block);
}

void choose_items(Loops& l, const Kernel& k, std::int64_t lanes) {
  const std::int64_t per_segment = l.rows / k.segments;
  l.segments = k.segments;
  l.chunk_rows = std::max<std::int64_t>(1, per_segment);
  if (k.has_column_reduce && l.columns < wide_row) {
    const std::int64_t by_work =
        ceil_div(per_segment * std::max<std::int64_t>(l.columns, lanes), item_elements);
    const std::int64_t by_digits = ceil_div(per_segment, rows_in_a_row);
    l.chunks = std::clamp<std::int64_t>(std::max(by_work, by_digits), 1,
                                        std::min(max_chunks(per_segment), per_segment));
    l.chunk_rows = ceil_div(per_segment, l.chunks);
    l.chunks = ceil_div(per_segment, l.chunk_rows);
    l.block = l.chunk_rows;  // an item is a chunk: see item_rows
    l.items = l.segments * l.chunks;
    return;
  }
  if (k.has_column_reduce || (!k.has_row_reduce && l.rows == 1)) {
    cut_columns(l, k.has_column_reduce ? 2048 : item_elements);
  } else {
    cut_rows(l);
  }
}

// An element's value does not depend on the cut unless rows are summed. Halves, quarters and so on:
// the cuts of kernels and products that follow each other meet.
void choose_fine_items(Loops& l, std::int64_t operations) {
  constexpr std::int64_t column_step = 64;
  std::int64_t parts = 1;
  while (parts < machine::most_fine_parts && 2 * parts * machine::fine_operations <= operations)
    parts *= 2;
  l.is_worth_a_team = operations >= machine::operations_worth_threads;
  if (l.by_columns) {
    l.fine_block =
        std::min(l.block, ceil_div(ceil_div(l.columns, parts), column_step) * column_step);
    l.fine_items = ceil_div(l.columns, l.fine_block);
  } else {
    l.fine_block = std::min(l.block, ceil_div(l.rows, parts));
    l.fine_items = ceil_div(l.rows, l.fine_block);
  }
}

std::int64_t operations_of(const Kernel& k) {
  return k.size() * std::count_if(k.nodes.begin(), k.nodes.end(),
                                  [](const Node& n) { return n.kind != NodeKind::load; });
}

}  // namespace

Loops loops_of(const Kernel& k, std::int64_t lanes) {
  Loops l;
  Ints sizes = k.domain;
  for (const Load& load : k.loads) {
    l.load_strides.push_back(load.strides);
    l.load_bounds.push_back(load.bounds);
  }
  for (const Store& store : k.stores)
    l.store_strides.push_back(store.strides.empty() ? Ints(sizes.size(), 0) : store.strides);
  std::vector<Ints*> all;
  for (Ints& s : l.load_strides) all.push_back(&s);
  for (std::size_t i = 0; i < k.stores.size(); ++i) {
    if (!k.stores[i].strides.empty()) all.push_back(&l.store_strides[i]);
  }
  std::size_t row_begin = sizes.size();
  for (std::int64_t n = 1; n < k.row;) n *= sizes[--row_begin];
  if (k.row != 0) {
    merge_loops(sizes, all, l.load_bounds, row_begin, sizes.size());
    merge_loops(sizes, all, l.load_bounds, 0, row_begin);
  } else {
    merge_loops(sizes, all, l.load_bounds, 0, sizes.size());
  }
  const bool has_columns = k.row == 0 ? !sizes.empty() : k.row > 1;
  for (std::vector<Ints>* list : {&l.load_strides, &l.store_strides}) {
    for (Ints& s : *list) {
      s.resize(sizes.size(), 0);
      if (!has_columns) s.push_back(0);
    }
  }
  l.columns = has_columns ? sizes.back() : 1;
  l.outer = sizes;
  if (has_columns) l.outer.pop_back();
  for (std::int64_t n : l.outer) l.rows *= n;
  choose_items(l, k, lanes);
  choose_tiles(l, k, lanes);
  if (k.has_column_reduce) {
    l.fine_block = l.block;
    l.fine_items = l.items;
  } else {
    choose_fine_items(l, operations_of(k));
  }
  return l;
}

Loops loops_over(std::int64_t rows, std::int64_t columns) {
  Loops l;
  l.rows = rows;
  l.columns = columns;
  if (rows == 1)
    cut_columns(l, item_elements);
  else
    cut_rows(l);
  choose_fine_items(l, rows * columns);
  return l;
}

}  // namespace reprise::plan
