// How a kernel's domain is walked: rows and columns, work items, scratch memory. Fixed by the
// shapes alone, never by the number of threads.
#pragma once

#include "plan/kernel.h"

namespace reprise::plan {

struct Loops {
  Ints outer;  // loops over rows, outermost first
  std::int64_t rows = 1, columns = 1;
  // Strides over `outer`, then that of the columns; per load and per store of the kernel.
  std::vector<Ints> load_strides, store_strides;
  std::vector<std::vector<Bound>> load_bounds;  // loops are counted likewise
  // Work items: blocks of rows, or blocks of columns (all rows each).
  bool by_columns = false;
  std::int64_t block = 1, items = 1;
  // The same cut finer, for threads that are awake already; equal to the above where that does not
  // pay.
  std::int64_t fine_block = 1, fine_items = 1;
  // Where operands or results are turned (neighbours lie along the last loop over rows, not along
  // columns), an item is walked in tiles that do not cross the end of that loop; 0: row by row.
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::vector<bool> turned_loads, turned_stores;
  bool is_worth_a_team = false;  // so much work that threads should stay awake for it
  // Column reductions: rows of a segment are accumulated in `chunks` parts of `chunk_rows` each.
  std::int64_t segments = 1, chunks = 1, chunk_rows = 1;
};
Loops loops_of(const Kernel&, std::int64_t lanes);
// Each element made alone with about one operation; cut by rows, or by columns if there is but one
// row.
Loops loops_over(std::int64_t rows, std::int64_t columns);

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace reprise::plan
