// What is assumed of a machine and of the libraries on it: every figure, and where it comes from.
//
// Asked from the system when the process starts: how many threads (runtime/threads.h), the width of
// vectors and the number of registers (codegen/machine_code.h). All else is stated here, and no
// plan depends on the instructions of a processor: what is fused, what is computed in place and
// where values lie is the same. A wrong figure costs time, never memory.
//
// Where a figure was measured, that was on a Zen 4 server: two cores with 32 KiB, 1 MiB and 32 MiB
// of cache, with AVX-512 and with its instructions capped to AVX2.
#pragma once

#include <cstdint>

namespace reprise::machine {

// Speeds, per second: bytes of memory and of a disk, operations of products. Rough on purpose: only
// where a transfer begins and ends, and what a budget plays again, depends on them.
inline constexpr double memory_speed = 10e9, disk_speed = 1e9, product_speed = 100e9;
// Of one thread, by which budgets compare plans (plan/seconds.h): bytes that kernels read and
// write, elements of cheap operations, and of those that take a polynomial.
inline constexpr double kernel_speed = 20e9, operation_speed = 30e9, slow_operation_speed = 2.5e9;

// Multiply-adds of a product from which it pays to wake threads: some 20 us on one core.
inline constexpr std::int64_t work_worth_threads = 1 << 20;
// Multiply-adds from which a product makes a part of its own for threads that are awake.
inline constexpr std::int64_t work_worth_a_part = 1 << 17;
// Multiply-adds of a slice that is passed from step to step without waiting for others.
inline constexpr std::int64_t work_worth_a_slice = 1 << 14;
// Operations of a kernel from which it pays to wake threads, and elements for one that is awake:
// both some 10 us. A finer cut, in at most so many parts, for kernels between products.
inline constexpr std::int64_t operations_worth_threads = 1 << 16, item_elements = 16384;
inline constexpr std::int64_t fine_operations = 2048, most_fine_parts = 8;
// Elements, and multiply-adds, from which an equation is compiled instead of evaluated: evaluating
// it once takes as long as compiling.
inline constexpr std::int64_t elements_worth_compiling = 1 << 17, work_worth_compiling = 1 << 20;
// Elements from which sorts and cumulative sums inside a program have code of their own.
inline constexpr std::int64_t elements_worth_code = 1024;

// Bytes of the first cache, and of the second one where it is small, that are used at a time.
inline constexpr std::int64_t first_cache = 16 << 10, second_cache = 256 << 10, cache_line = 64;
// A square of numbers that is transposed at a time, a side: some lines of each page, and near
// enough to the first cache.
inline constexpr std::int64_t turned_square = 64;
// Rows from which what is read is asked for while others are copied: each is on a page of its own.
inline constexpr unsigned rows_ahead = 8;
// Operands and result of a matrix of so many bytes stay near for the step that comes next.
inline constexpr std::int64_t near_matrix = 1 << 20;

// Products by tiles: terms of a sum, and columns of the right operand, in a block. In f32 it fills
// the second cache; half as many columns cost 4 % (measured).
inline constexpr std::int64_t tile_depth = 256, tile_columns = second_cache / (4 * tile_depth);
// Rows of a part: half as many cost 2 % for the copies of blocks (measured). Sums that are kept
// apart need memory: half as many.
inline constexpr std::int64_t most_part_rows = 504, good_part_rows = 252, least_part_rows = 60;
inline constexpr std::int64_t good_part_columns = 256, least_part_columns = 128;
// A thread that is held up delays the others by at most one of so many parts.
inline constexpr std::int64_t parts_per_thread = 4;
// Products of halves by the library: parts, and the sizes from which a part is as fast as the
// whole, with a right operand of so many elements in the cache a quarter of it (measured).
inline constexpr std::int64_t large_work = 1 << 26, most_library_parts = 64,
                              good_library_part = 256;
inline constexpr std::int64_t library_operand_in_cache = 1 << 17;
// Convolutions by the library, each part on one thread.
inline constexpr std::int64_t most_convolution_parts = 32;
// Rows for which the right operand is read where it is: copying it would take longer than it saves.
inline constexpr std::int64_t rows_read_in_place = 24;

}  // namespace reprise::machine
