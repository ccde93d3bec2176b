#include "plan/reduction.h"

#include "base/dtype.h"
#include "ops/records.h"
#include "transform/rewrite.h"

#include <algorithm>

namespace reprise::plan {
namespace {

bool is_reduction(const Equation& e) {
  return e.prim == &reduce_sum_p || e.prim == &reduce_max_p || e.prim == &reduce_min_p ||
         e.prim == &reduce_prod_p || e.prim == &reduce_and_p || e.prim == &reduce_or_p;
}

std::vector<bool> reduced_dims(const Equation& e, const Shape& shape) {
  std::vector<bool> reduced(shape.size(), false);
  for (std::int64_t d : e.params.get<Ints>("axes")) reduced[static_cast<std::size_t>(d)] = true;
  return reduced;
}

// The operand's dimensions in runs that are reduced or kept as a whole; size 1 belongs to any.
struct Run {
  bool reduced;
  std::int64_t size;
  std::size_t begin, end;  // dimensions
};
std::vector<Run> runs_of(const Equation& e, const Shape& shape) {
  const std::vector<bool> reduced = reduced_dims(e, shape);
  std::vector<Run> runs;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (runs.empty() || runs.back().reduced != reduced[d]) runs.push_back({reduced[d], 1, d, d});
    runs.back().size *= shape[d];
    runs.back().end = d + 1;
  }
  return runs;
}

class SplitReductions {
 public:
  explicit SplitReductions(const Program& p) : rewrite_(p) {}

  Program run(const Program& p) {
    for (const Equation& e : p.eqns) {
      Equation now = e;
      now.in = rewrite_.read_all(e.in);
      now.params = map_programs(e.params, "split_reductions", split_reductions);
      if (is_reduction(e) && e.in[0].is_var())
        reduce(std::move(now), p.type(e.in[0]).shape);
      else
        rewrite_.append(std::move(now));
    }
    return rewrite_.finish();
  }

 private:
  void reduce(Equation e, const Shape& shape) {
    const std::vector<Run> runs = runs_of(e, shape);
    const auto reduced =
        std::count_if(runs.begin(), runs.end(), [](const Run& r) { return r.reduced; });
    if (element_count(shape) == 0 || reduced == 0) return rewrite_.append(std::move(e));
    const Run last =
        *std::find_if(runs.rbegin(), runs.rend(), [](const Run& r) { return r.reduced; });
    if (reduced > 1) return in_two(std::move(e), shape, {last.begin, last.end});
    if (&runs.back() == &runs.front() && last.size > long_row) return in_rows(std::move(e), shape);
    rewrite_.append(std::move(e));
  }
  // First the innermost block of reduced dimensions, then the others.
  void in_two(Equation e, const Shape& shape, std::pair<std::size_t, std::size_t> block) {
    Ints axes;
    Shape kept;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d >= block.first && d < block.second)
        axes.push_back(static_cast<std::int64_t>(d));
      else
        kept.push_back(shape[d]);
    }
    const Var part = emit(e, axes, kept);
    Ints rest;
    for (std::int64_t d : e.params.get<Ints>("axes")) {
      const auto i = static_cast<std::size_t>(d);
      if (i < block.first) rest.push_back(d);
      if (i >= block.second) rest.push_back(d - static_cast<std::int64_t>(axes.size()));
    }
    e.in = {Atom::of(part)};
    e.params = e.params.with("axes", rest);
    reduce(std::move(e), kept);
  }
  // One number from very many: rows of a handy size first.
  void in_rows(Equation e, const Shape& shape) {
    const std::int64_t n = element_count(shape), row = divisor_near(n, 4096);
    if (row == n) return rewrite_.append(std::move(e));
    Type type = rewrite_.type(e.in[0]);
    type.shape = {n / row, row};
    const Var rows = rewrite_.fresh(type);
    const Params params{{"dimensions", None{}}, {"new_sizes", type.shape}, {"sharding", None{}}};
    rewrite_.append({&reshape_p, params, e.in, {rows}, e.at, e.phase});
    e.in = {Atom::of(rows)};
    e.params = e.params.with("axes", Ints{0, 1});
    const Var part = emit(e, {1}, {n / row});
    e.in = {Atom::of(part)};
    e.params = e.params.with("axes", Ints{0});
    rewrite_.append(std::move(e));
  }
  Var emit(Equation e, const Ints& axes, const Shape& kept) {
    Type type = rewrite_.type(Atom::of(e.out[0]));
    type.shape = kept;
    const Var v = rewrite_.fresh(type);
    e.params = e.params.with("axes", axes);
    e.out = {v};
    rewrite_.append(std::move(e));
    return v;
  }

  Rewriter rewrite_;
};

}  // namespace

std::int64_t divisor_near(std::int64_t n, std::int64_t wanted) {
  for (std::int64_t d = wanted; d > 64; --d) {
    if (n % d == 0) return d;
  }
  return n;
}

std::optional<Reduction> reduction_of(const Program& p, const Equation& e) {
  if (!is_reduction(e) || !e.in[0].is_var()) return std::nullopt;
  const Type& type = p.type(e.in[0].var);
  if (type.size() == 0 || type.dtype == Dtype::key || type.dtype == Dtype::float0)
    return std::nullopt;
  const auto runs = runs_of(e, type.shape);
  const auto block = std::find_if(runs.begin(), runs.end(), [](const Run& r) { return r.reduced; });
  if (block == runs.end() ||
      std::count_if(runs.begin(), runs.end(), [](const Run& r) { return r.reduced; }) != 1) {
    return std::nullopt;
  }
  Reduction out;
  out.along_row = block + 1 == runs.end();
  const std::int64_t before = block == runs.begin() ? 1 : runs.front().size;
  if (out.along_row) return Reduction{true, 1, before, block->size};
  return Reduction{false, before, block->size, runs.back().size};
}

Program split_reductions(const Program& p) { return SplitReductions(p).run(p); }

}  // namespace reprise::plan
