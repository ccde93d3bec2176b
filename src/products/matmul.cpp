// Floats are multiplied by tiles (tiled_dot.h). A spec of halves becomes calls of the library on
// one thread each (matmul_calls.h), with copies around them: which operands to copy, and whether to
// compute c^T = b^T a^T, is chosen by the bytes copied. Where the library has no code for the
// processor's own products of halves, they are widened (widened_dot.h).
#include "products/matmul.h"

#include "base/error.h"
#include "codegen/openmp.h"
#include "codegen/pool.h"
#include "products/dnnl_api.h"
#include "products/dnnl_engine.h"
#include "products/matmul_calls.h"
#include "products/primitive_cache.h"
#include "products/tiled_dot.h"
#include "products/widened_dot.h"

#include <algorithm>
#include <array>
#include <optional>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;
using Layout = dnnl::memory::desc;
using Block = PrimitiveChain::Block;
enum Argument : std::size_t { arg_a, arg_b, arg_bias, arg_c };
using Arguments = std::array<void*, 4>;

std::optional<dnnl::memory::data_type> library_type(Dtype d) {
  if (d == Dtype::f32) return dnnl::memory::data_type::f32;
  if (d == Dtype::bf16) return dnnl::memory::data_type::bf16;
  return std::nullopt;
}

// ------------------------------------------------------------------------------------- descriptors
// A dimension that the operand does not move along has size 1: oneDNN broadcasts it.
Layout layout(Dtype dtype, const Ints& batch, const Ints& strides, std::int64_t rows,
              std::int64_t columns) {
  Ints dims = batch, steps = strides;
  for (std::size_t d = batch.size(); d-- > 0;) {
    if (strides[d] != 0) continue;
    dims[d] = 1;
    steps[d] = d + 1 < batch.size() ? steps[d + 1] * dims[d + 1] : rows * columns;
  }
  dims.insert(dims.end(), {rows, columns});
  return Layout(dims, *library_type(dtype), steps);
}
Layout a_layout(const MatmulSpec& s) { return layout(s.dtype, s.batch, s.a_strides, s.m, s.k); }
Layout b_layout(const MatmulSpec& s) { return layout(s.dtype, s.batch, s.b_strides, s.k, s.n); }
Layout c_layout(const MatmulSpec& s) { return layout(s.result, s.batch, s.c_strides, s.m, s.n); }
Layout bias_layout(const MatmulSpec& s) {
  Ints dims(s.batch.size() + 2, 1), strides(dims.size(), s.n);
  dims.back() = s.n;
  strides.back() = 1;
  return Layout(dims, *library_type(s.result), strides);
}

dnnl::memory no_bytes(const Layout& l) { return {l, dnnl_cpu(), nullptr}; }

using ProductDesc = dnnl::matmul::primitive_desc;

std::optional<ProductDesc> product_desc(const MatmulSpec& s) try {
  dnnl::primitive_attr attributes = planned_scratch();
  dnnl::post_ops after;
  if (s.accumulate) after.append_sum(1.0f);
  attributes.set_post_ops(after);
  const Layout a = a_layout(s), b = b_layout(s), c = c_layout(s);
  return s.bias ? describe<dnnl::matmul>(dnnl_cpu(), attributes, a, b, bias_layout(s), c)
                : describe<dnnl::matmul>(dnnl_cpu(), attributes, a, b, c);
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw;
  return std::nullopt;  // no implementation for these types or strides
}

// ----------------------------------------------------------------------------------------- choices
enum Copies : unsigned { copy_a = 1, copy_b = 2, copy_c = 4, all_copies = 8 };

struct Choice {
  bool is_swapped = false;
  unsigned copies = 0;  // operands that go through a dense temporary
  std::vector<MatmulCall> calls;
  std::int64_t copied_elements = 0;
};

MatmulSpec after_copies(MatmulSpec s, unsigned copies) {
  if ((copies & copy_a) != 0) s.a_strides = dense_strides(s.batch, s.a_strides, s.m, s.k);
  if ((copies & copy_b) != 0) s.b_strides = dense_strides(s.batch, s.b_strides, s.k, s.n);
  if ((copies & copy_c) != 0) s.c_strides = dense_strides(s.batch, s.c_strides, s.m, s.n);
  return s;
}

// Parts of one product often have the same right operand: then it is copied once for all of them.
bool shares_b(const std::vector<MatmulCall>& calls) {
  return calls.size() > 1 && std::all_of(calls.begin(), calls.end(), [](const MatmulCall& c) {
           return c.b == 0 && c.spec.batch.empty();
         });
}

std::int64_t copied_elements(const Choice& choice) {
  std::int64_t sum = 0;
  const auto count = [](const MatmulSpec& s, const Ints& strides, std::int64_t matrix) {
    for (std::size_t d = 0; d < s.batch.size(); ++d) matrix *= strides[d] == 0 ? 1 : s.batch[d];
    return matrix;
  };
  for (const MatmulCall& call : choice.calls) {
    const MatmulSpec& s = call.spec;
    const bool has_own_b = &call == &choice.calls.front() || !shares_b(choice.calls);
    if ((choice.copies & copy_a) != 0) sum += count(s, s.a_strides, s.m * s.k);
    if ((choice.copies & copy_b) != 0 && has_own_b) sum += count(s, s.b_strides, s.k * s.n);
    if ((choice.copies & copy_c) != 0) sum += count(s, s.c_strides, s.m * s.n);
  }
  return sum;
}

bool takes(const Choice& choice) {
  const auto takes_it = [&](const MatmulCall& call) {
    const auto desc = product_desc(after_copies(call.spec, choice.copies));
    return desc && keeps_to_scratchpad(*desc);
  };
  std::vector<MatmulSpec> seen;
  return std::all_of(choice.calls.begin(), choice.calls.end(), [&](const MatmulCall& call) {
    if (std::find(seen.begin(), seen.end(), call.spec) != seen.end()) return true;
    seen.push_back(call.spec);
    return takes_it(call);
  });
}

std::optional<Choice> choose(const MatmulSpec& s) {
  std::vector<Choice> choices;
  for (const bool swap : {false, true}) {
    if (swap && s.bias) continue;  // the library adds a bias along columns only
    const std::vector<MatmulCall> calls = library_calls(swap ? swapped(s) : s);
    for (unsigned copies = 0; copies < all_copies; ++copies) {
      Choice choice{swap, copies, calls, 0};
      choice.copied_elements = copied_elements(choice);
      choices.push_back(std::move(choice));
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& x, const Choice& y) {
    return x.copied_elements < y.copied_elements;
  });
  for (Choice& choice : choices) {
    if (takes(choice)) return std::move(choice);
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------ chains
// The two ends of a copy, in as few dimensions as both allow.
struct Copy {
  Layout from, to;
};
Copy copy_of(Dtype dtype, Ints batch, Ints from, Ints to, std::int64_t rows, std::int64_t columns) {
  for (std::size_t d = batch.size(); d-- > 0;) {
    const bool is_last = d + 1 == batch.size();
    const bool stays = batch[d] == 1 || from[d] == 0;
    if (!stays &&
        (is_last || from[d] != from[d + 1] * batch[d + 1] || to[d] != to[d + 1] * batch[d + 1])) {
      continue;
    }
    if (!stays) batch[d + 1] *= batch[d];
    for (Ints* x : {&batch, &from, &to}) x->erase(x->begin() + static_cast<std::ptrdiff_t>(d));
  }
  return {layout(dtype, batch, from, rows, columns), layout(dtype, batch, to, rows, columns)};
}

void add_product(PrimitiveChain& chain, const MatmulSpec& s, Block a, Block b, Block c) {
  const auto desc = product_desc(s);
  if (!desc) fail<RuntimeError>("matmul: oneDNN refuses a part of a product that it takes");
  std::vector<PrimitiveChain::Operand> operands{
      {DNNL_ARG_SRC, chain.place(a, no_bytes(a_layout(s)))},
      {DNNL_ARG_WEIGHTS, chain.place(b, no_bytes(b_layout(s)))},
      {DNNL_ARG_DST, chain.place(c, no_bytes(c_layout(s)))}};
  if (s.bias) {
    const Block bias = PrimitiveChain::argument(arg_bias);
    operands.push_back({DNNL_ARG_BIAS, chain.place(bias, no_bytes(bias_layout(s)))});
  }
  chain.add(dnnl::matmul(*desc), no_bytes(desc->scratchpad_desc()), std::move(operands));
}

// a' = copy of a; b' = copy of b; c' = copy of c; c' (+)= a' b'; c = copy of c'
PrimitiveChain part_chain(const MatmulSpec& s, unsigned copies, int workers) {
  PrimitiveChain chain(workers);
  const MatmulSpec dense = after_copies(s, copies);
  Block a = PrimitiveChain::argument(arg_a), b = PrimitiveChain::argument(arg_b);
  const Block result = PrimitiveChain::argument(arg_c);
  const auto copied = [&](Block from, const Copy& ends) {
    const Block to = chain.temporary(ends.to.get_size());
    chain.add_copy(from, no_bytes(ends.from), to, no_bytes(ends.to));
    return to;
  };
  if ((copies & copy_a) != 0) {
    a = copied(a, copy_of(s.dtype, s.batch, s.a_strides, dense.a_strides, s.m, s.k));
  }
  if ((copies & copy_b) != 0) {
    b = copied(b, copy_of(s.dtype, s.batch, s.b_strides, dense.b_strides, s.k, s.n));
  }
  if ((copies & copy_c) == 0) {
    add_product(chain, dense, a, b, result);
    return chain;
  }
  const Copy ends = copy_of(s.result, s.batch, s.c_strides, dense.c_strides, s.m, s.n);
  const Block c = s.accumulate ? copied(result, ends) : chain.temporary(ends.to.get_size());
  add_product(chain, dense, a, b, c);
  chain.add_copy(c, no_bytes(ends.to), result, no_bytes(ends.from));
  return chain;
}

// Parts that are alike have one chain, which runs on other places for each.
class ChainParts {
 public:
  struct Start {
    std::int64_t a = 0, b = 0, bias = 0, c = 0;  // bytes
  };
  explicit ChainParts(int threads) : threads_(threads) {}

  void add(const MatmulSpec& s, unsigned copies, const Start& start) {
    const auto known = std::find(specs_.begin(), specs_.end(), s);
    parts_.push_back({static_cast<std::size_t>(known - specs_.begin()), start});
    if (known != specs_.end()) return;
    specs_.push_back(s);
    add_chain(part_chain(s, copies, threads_));
  }
  // Copies rows of b.
  void add_copy_of(const Copy& ends, const Start& start) {
    PrimitiveChain chain(threads_);
    chain.add_copy(PrimitiveChain::argument(arg_b), no_bytes(ends.from),
                   PrimitiveChain::argument(arg_c), no_bytes(ends.to));
    parts_.push_back({chains_.size(), start});
    add_chain(std::move(chain));
  }
  std::size_t scratch_bytes() const { return stride_ * static_cast<std::size_t>(workers()); }
  bool run(const Arguments& arguments, std::byte* scratch) const noexcept {
    return share_parts(workers(), std::ssize(parts_), [&](std::int64_t worker, std::int64_t i) {
      const auto& [kind, start] = parts_[static_cast<std::size_t>(i)];
      Arguments moved = arguments;
      const auto move = [&](Argument x, std::int64_t by) {
        moved[x] = static_cast<std::byte*>(moved[x]) + by;
      };
      move(arg_a, start.a);
      move(arg_b, start.b);
      if (moved[arg_bias] != nullptr) move(arg_bias, start.bias);
      move(arg_c, start.c);
      const auto own = static_cast<std::size_t>(worker);
      return chains_[kind].run(moved, scratch + own * stride_, own);
    });
  }
  int workers() const {
    return static_cast<int>(std::min<std::int64_t>(threads_, std::ssize(parts_)));
  }

 private:
  void add_chain(PrimitiveChain chain) {
    stride_ = std::max(stride_, (chain.scratch_bytes() + 63) / 64 * 64);
    chains_.push_back(std::move(chain));
  }
  struct Part {
    std::size_t kind;
    Start start;
  };
  int threads_;
  std::vector<MatmulSpec> specs_;
  std::vector<PrimitiveChain> chains_;
  std::vector<Part> parts_;
  std::size_t stride_ = 0;  // of a thread's scratch
};

class ProductInParts final : public Matmul {
 public:
  ProductInParts(const Choice& choice, int threads)
      : is_swapped_(choice.is_swapped), copies_(threads), parts_(threads) {
    unsigned copies = choice.copies;
    const MatmulSpec& first = choice.calls.front().spec;
    if ((copies & copy_b) != 0 && shares_b(choice.calls)) {
      copies &= ~copy_b;
      copy_right_operand(first);
    }
    const auto size = static_cast<std::int64_t>(itemsize(first.dtype));
    const auto result_size = static_cast<std::int64_t>(itemsize(first.result));
    for (const MatmulCall& call : choice.calls) {
      MatmulSpec s = call.spec;
      if (b_bytes_ != 0) s.b_strides = {s.n, 1};
      parts_.add(s, copies,
                 {call.a * size, call.b * size, call.bias * result_size, call.c * result_size});
    }
  }
  std::size_t scratch_bytes() const override {
    return b_bytes_ + std::max(copies_.scratch_bytes(), parts_.scratch_bytes());
  }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    if (is_swapped_) std::swap(a, b);
    Arguments arguments{const_cast<void*>(a), const_cast<void*>(b), const_cast<void*>(bias), c};
    auto* const own = static_cast<std::byte*>(scratch) + b_bytes_;
    const OneLibraryThread one;
    if (b_bytes_ != 0) {
      if (!copies_.run({nullptr, arguments[arg_b], nullptr, scratch}, own)) return false;
      arguments[arg_b] = scratch;
    }
    return parts_.run(arguments, own);
  }

 private:
  void copy_right_operand(const MatmulSpec& s) {
    constexpr std::int64_t pieces = 8;
    const auto size = static_cast<std::int64_t>(itemsize(s.dtype));
    const std::int64_t step = (s.k + pieces - 1) / pieces;
    for (std::int64_t k = 0; k < s.k; k += step) {
      copies_.add_copy_of(copy_of(s.dtype, {}, s.b_strides, {s.n, 1}, std::min(step, s.k - k), s.n),
                          {0, k * s.b_strides[0] * size, 0, k * s.n * size});
    }
    b_bytes_ = (static_cast<std::size_t>(s.k * s.n * size) + 63) / 64 * 64;
  }

  bool is_swapped_;
  std::size_t b_bytes_ = 0;  // of a copy for all parts
  ChainParts copies_, parts_;
};

// ------------------------------------------------------------------------------------- empty sums
// k = 0: the product is zero, what follows it is not.
class EmptySum final : public Matmul {
 public:
  explicit EmptySum(const MatmulSpec& s) : s_(s) {}
  std::size_t scratch_bytes() const override { return 0; }
  bool run(const void*, const void*, const void* bias, void* c, void*) const noexcept override {
    if (result_is_empty(s_)) return true;
    const auto fill_all = [&]<class T>(T* to) { fill(static_cast<const T*>(bias), to, 0); };
    if (s_.result == Dtype::f64)
      fill_all(static_cast<double*>(c));
    else if (s_.result == Dtype::f32)
      fill_all(static_cast<float*>(c));
    else if (s_.result == Dtype::bf16)
      fill_all(static_cast<BFloat16*>(c));
    else
      fill_all(static_cast<Float16*>(c));
    return true;
  }

 private:
  template <class T>
  void fill(const T* bias, T* c, std::size_t d) const noexcept {
    if (d < s_.batch.size()) {
      for (std::int64_t i = 0; i < s_.batch[d]; ++i) fill(bias, c + i * s_.c_strides[d], d + 1);
      return;
    }
    for (std::int64_t i = 0; i < s_.m; ++i) {
      for (std::int64_t j = 0; j < s_.n; ++j) {
        T& x = c[i * s_.c_strides[d] + j * s_.c_strides[d + 1]];
        Compute<T> value = s_.accumulate ? static_cast<Compute<T>>(x) : Compute<T>{0};
        if (s_.bias) value += static_cast<Compute<T>>(bias[j]);
        x = T(value);
      }
    }
  }
  const MatmulSpec s_;
};

// ------------------------------------------------------------------------------------------- cache
struct SpecHash {
  std::size_t operator()(const MatmulSpec& s) const {
    std::size_t h = 0;
    const auto mix = [&](std::int64_t x) {
      h = (h ^ static_cast<std::size_t>(x)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    };
    for (const Ints* x : {&s.batch, &s.a_strides, &s.b_strides, &s.c_strides}) {
      for (std::int64_t v : *x) mix(v);
    }
    for (std::int64_t v : {s.m, s.n, s.k}) mix(v);
    mix(static_cast<std::int64_t>(s.dtype) * 256 + static_cast<std::int64_t>(s.result));
    mix((s.accumulate ? 1 : 0) + (s.bias ? 2 : 0));
    return h;
  }
};

std::shared_ptr<const Matmul> build(const MatmulSpec& s, int threads) {
  const OneLibraryThread one;
  if (library_type(s.dtype) && library_type(s.result)) {
    if (const std::optional<Choice> choice = choose(s))
      return std::make_shared<ProductInParts>(*choice, threads);
  }
  return can_widen(s) ? make_widened_dot(s, threads) : nullptr;
}

using Made = PrimitiveCache<MatmulSpec, Matmul, SpecHash>;
Made& made() {
  constexpr std::size_t most = 128;    // the library's code: some 100 KiB each
  static Made& all = *new Made(most);  // never destroyed: someone may compute until the very end
  return all;
}

// Null: neither tiles nor the library take the spec.
std::shared_ptr<const Matmul> find_or_build(const MatmulSpec& s, int threads) try {
  if (!is_well_formed(s)) return nullptr;
  if (result_is_empty(s) || s.k == 0) return std::make_shared<EmptySum>(s);
  if (can_tile(s)) return make_tiled_dot(s, threads);
  return made().find_or_make(s, threads, build);
} catch (const dnnl::error& error) {
  fail<RuntimeError>("matmul: oneDNN failed, got ", error.what());
}

}  // namespace

bool can_matmul(const MatmulSpec& s, int threads) { return find_or_build(s, threads) != nullptr; }

void release_unused_matmuls() { made().release(); }

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& s, int threads) {
  std::shared_ptr<const Matmul> matmul = find_or_build(s, threads);
  if (matmul == nullptr) {
    fail<RuntimeError>("matmul: there is no code for this product, got ", s.dtype, " with m=", s.m,
                       ", n=", s.n, ", k=", s.k);
  }
  return matmul;
}

}  // namespace reprise::codegen
