// A spec becomes a chain of primitives: which operands to copy, and whether to compute c^T = b^T
// a^T, is chosen by the bytes copied; matmul_calls.h cuts the product into calls.
#include "codegen/matmul.h"

#include "base/error.h"
#include "base/memory.h"
#include "codegen/dnnl_engine.h"
#include "codegen/gemm_parts.h"
#include "codegen/matmul_calls.h"
#include "codegen/openmp.h"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;
using Layout = dnnl::memory::desc;
using Block = PrimitiveChain::Block;
enum Argument : std::size_t { arg_a, arg_b, arg_bias, arg_c, arg_copies };  // copies of a, b and c
using Arguments = std::array<void*, 7>;

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

dnnl::primitive_attr planned_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

using ProductDesc = dnnl::matmul::primitive_desc;

std::optional<ProductDesc> product_desc(const MatmulSpec& s, int threads) try {
  const TeamScope team(threads);
  dnnl::primitive_attr attributes = planned_scratch();
  dnnl::post_ops after;
  if (s.accumulate) after.append_sum(1.0f);
  attributes.set_post_ops(after);
  const auto desc = s.bias
                        ? dnnl::matmul::desc(a_layout(s), b_layout(s), bias_layout(s), c_layout(s))
                        : dnnl::matmul::desc(a_layout(s), b_layout(s), c_layout(s));
  return ProductDesc(desc, attributes, dnnl_cpu());
} catch (const dnnl::error&) {
  return std::nullopt;  // no implementation for these types or strides
}

// The two ends of a copy, in as few dimensions as both allow.
struct Copy {
  Layout from, to;
};
std::optional<Copy> copy_layouts(Dtype dtype, Ints batch, Ints from, Ints to, std::int64_t rows,
                                 std::int64_t columns) {
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
  if (batch.size() + 2 > DNNL_MAX_NDIMS) return std::nullopt;
  return Copy{layout(dtype, batch, from, rows, columns), layout(dtype, batch, to, rows, columns)};
}

// ----------------------------------------------------------------------------------------- choices
// brgemm keeps to the scratchpad. The older gemm is here for processors that have no other: it
// allocates for itself, and its bits depend on the number of threads unless that is one. What it
// does better than brgemm never comes here (gemm_parts.h).
enum class Entry { brgemm, gemm };

struct Choice {
  Entry entry = Entry::brgemm;
  bool is_swapped = false;
  std::optional<Copy> copy_a, copy_b, copy_c;  // between the operand and a dense temporary
  std::int64_t copied_elements = 0;
  MatmulSpec spec;  // of the product after copying
};

std::optional<Choice> make_choice(const MatmulSpec& original, bool swap, unsigned copies) {
  Choice choice;
  choice.is_swapped = swap;
  choice.spec = swap ? swapped(original) : original;
  MatmulSpec& s = choice.spec;
  const auto copy = [&](Dtype dtype, Ints& strides, std::int64_t rows, std::int64_t columns) {
    Ints dense = dense_strides(s.batch, strides, rows, columns);
    auto layouts = copy_layouts(dtype, s.batch, strides, dense, rows, columns);
    if (layouts) {
      choice.copied_elements += static_cast<std::int64_t>(layouts->to.get_size() / itemsize(dtype));
    }
    strides = std::move(dense);
    return layouts;
  };
  const bool a = (copies & 1u) != 0, b = (copies & 2u) != 0, c = (copies & 4u) != 0;
  if (a) choice.copy_a = copy(s.dtype, s.a_strides, s.m, s.k);
  if (b) choice.copy_b = copy(s.dtype, s.b_strides, s.k, s.n);
  if (c) choice.copy_c = copy(s.result, s.c_strides, s.m, s.n);
  if (a != choice.copy_a.has_value() || b != choice.copy_b.has_value() ||
      c != choice.copy_c.has_value()) {
    return std::nullopt;
  }
  return choice;
}

bool takes(const Choice& choice, Entry entry, int threads) {
  const bool is_brgemm = entry == Entry::brgemm;
  const auto calls = is_brgemm ? ordered_calls(choice.spec) : independent_calls(choice.spec);
  const MatmulSpec& s = calls.front().spec;
  const auto desc = product_desc(s, is_brgemm ? undivided_threads(s, threads) : 1);
  return desc && std::string_view(desc->impl_info_str()).find(is_brgemm ? "brg" : "gemm:") !=
                     std::string_view::npos;
}

std::optional<Choice> choose(const MatmulSpec& s, int threads) {
  std::vector<Choice> choices;
  for (const bool swap : {false, true}) {
    if (swap && s.bias) continue;  // the library adds a bias along columns only
    for (unsigned copies = 0; copies < 8; ++copies) {
      if (auto choice = make_choice(s, swap, copies)) choices.push_back(std::move(*choice));
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& x, const Choice& y) {
    return x.copied_elements < y.copied_elements;
  });
  for (const Entry entry : {Entry::brgemm, Entry::gemm}) {
    for (Choice& choice : choices) {
      if (!takes(choice, entry, threads)) continue;
      choice.entry = entry;
      return std::move(choice);
    }
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------ chains
// Steps of one chain, made for a number of threads.
class ChainBuilder {
 public:
  explicit ChainBuilder(int threads) : threads_(threads) {}

  Block copied(Block from, const std::optional<Copy>& layouts) {
    if (!layouts) return from;
    const Block to = chain_.temporary(layouts->to.get_size());
    copy(from, layouts->from, to, layouts->to);
    return to;
  }
  Block temporary(const Layout& layout) { return chain_.temporary(layout.get_size()); }
  void copy(Block from, const Layout& from_layout, Block to, const Layout& to_layout) {
    const TeamScope team(threads_);
    const dnnl::reorder::primitive_desc desc(dnnl_cpu(), from_layout, dnnl_cpu(), to_layout,
                                             planned_scratch());
    chain_.add(dnnl::reorder(desc), no_bytes(desc.scratchpad_desc()),
               {{DNNL_ARG_FROM, chain_.place(from, no_bytes(from_layout))},
                {DNNL_ARG_TO, chain_.place(to, no_bytes(to_layout))}});
  }
  void multiply(const MatmulCall& call, Block a, Block b, Block c) {
    const MatmulSpec& s = call.spec;
    make_product(s);
    const auto size = static_cast<std::int64_t>(itemsize(s.dtype));
    const auto result_size = static_cast<std::int64_t>(itemsize(s.result));
    std::vector<PrimitiveChain::Operand> operands{
        {DNNL_ARG_SRC, chain_.place(a, no_bytes(a_layout(s)), call.a * size)},
        {DNNL_ARG_WEIGHTS, chain_.place(b, no_bytes(b_layout(s)), call.b * size)},
        {DNNL_ARG_DST, chain_.place(c, no_bytes(c_layout(s)), call.c * result_size)}};
    if (s.bias) {
      const Block bias = PrimitiveChain::argument(arg_bias);
      operands.push_back({DNNL_ARG_BIAS, chain_.place(bias, no_bytes(bias_layout(s)))});
    }
    chain_.add(product_, no_bytes(product_scratch_), std::move(operands));
  }
  PrimitiveChain finish() { return std::move(chain_); }

 private:
  // Calls in a row often share the primitive.
  void make_product(const MatmulSpec& s) {
    if (product_ && product_spec_ == s) return;
    const int threads = undivided_threads(s, threads_);
    const auto desc = product_desc(s, threads);
    if (!desc) fail<RuntimeError>("matmul: oneDNN refuses a part of a product that it takes");
    const TeamScope team(threads);
    product_ = dnnl::matmul(*desc);
    product_scratch_ = desc->scratchpad_desc();
    product_spec_ = s;
  }

  const int threads_;
  PrimitiveChain chain_;
  dnnl::matmul product_;
  Layout product_scratch_;
  MatmulSpec product_spec_;
};

// a' = copy of a; b' = copy of b; c' = copy of c; c' (+)= a' b'; c = copy of c'
PrimitiveChain ordered_chain(const Choice& choice, int threads) {
  ChainBuilder chain(threads);
  const Block a =
      chain.copied(PrimitiveChain::argument(choice.is_swapped ? arg_b : arg_a), choice.copy_a);
  const Block b =
      chain.copied(PrimitiveChain::argument(choice.is_swapped ? arg_a : arg_b), choice.copy_b);
  const Block result = PrimitiveChain::argument(arg_c);
  const auto& copy_c = choice.copy_c;
  Block c = result;
  if (copy_c) {
    c = choice.spec.accumulate ? chain.copied(result, copy_c) : chain.temporary(copy_c->to);
  }
  for (const MatmulCall& call : ordered_calls(choice.spec)) chain.multiply(call, a, b, c);
  if (copy_c) chain.copy(c, copy_c->to, result, copy_c->from);
  return chain.finish();
}

// By brgemm, which brings its own threads.
class Product final : public Matmul {
 public:
  Product(const Choice& choice, int threads)
      : threads_(threads),
        serial_(ordered_chain(choice, 1)),
        parallel_(threads > 1 ? ordered_chain(choice, threads) : PrimitiveChain()) {}

  std::size_t scratch_bytes() const override {
    return std::max(serial_.scratch_bytes(), parallel_.scratch_bytes());
  }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    const Arguments arguments{const_cast<void*>(a), const_cast<void*>(b), const_cast<void*>(bias),
                              c};
    const bool alone = threads_ == 1 || team_size(threads_) < threads_;
    const TeamScope team(alone ? 1 : threads_);
    return (alone ? serial_ : parallel_).run(arguments, scratch);
  }

 private:
  int threads_;
  PrimitiveChain serial_;    // also for runs inside a parallel region
  PrimitiveChain parallel_;  // made for exactly threads_ threads
};

// By gemm, in parts of one thread each, between copies of operands that gemm cannot use where they
// are.
class ProductInParts final : public Matmul {
 public:
  ProductInParts(const Choice& choice, int threads) : threads_(threads) {
    ChainBuilder before(1), after(1);
    const Block a = PrimitiveChain::argument(choice.is_swapped ? arg_b : arg_a);
    const Block b = PrimitiveChain::argument(choice.is_swapped ? arg_a : arg_b);
    const Block c = PrimitiveChain::argument(arg_c);
    const Block part_a = copied(0, a, choice.copy_a, true, before);
    const Block part_b = copied(1, b, choice.copy_b, true, before);
    const Block part_c = copied(2, c, choice.copy_c, choice.spec.accumulate, before);
    if (choice.copy_c) after.copy(part_c, choice.copy_c->to, c, choice.copy_c->from);
    before_ = before.finish();
    after_ = after.finish();
    for (const MatmulCall& call : independent_calls(choice.spec)) {
      ChainBuilder chain(1);
      chain.multiply(call, part_a, part_b, part_c);
      parts_.push_back(chain.finish());
      part_scratch_ = std::max(part_scratch_, parts_.back().scratch_bytes());
    }
    part_scratch_ = std::max({part_scratch_, before_.scratch_bytes(), after_.scratch_bytes()});
  }
  std::size_t scratch_bytes() const override {
    return copy_bytes_[0] + copy_bytes_[1] + copy_bytes_[2] +
           part_scratch_ * static_cast<std::size_t>(threads_);
  }
  std::size_t hidden_bytes() const override {
    constexpr std::size_t most_per_thread = 4u << 20;  // measured over sizes and orders: 3.6 MiB
    return most_per_thread * static_cast<std::size_t>(threads_);
  }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    Arguments arguments{const_cast<void*>(a), const_cast<void*>(b), const_cast<void*>(bias), c};
    auto* own = static_cast<std::byte*>(scratch);
    for (std::size_t i = 0; i < 3; ++i) {
      arguments[arg_copies + i] = own;
      own += copy_bytes_[i];
    }
    const LibraryMemory library(hidden_bytes());
    const TeamScope team(1);
    if (!before_.run(arguments, own)) return false;
    const auto run_part = [&](std::int64_t worker, std::int64_t i) {
      std::byte* const of_worker = own + static_cast<std::size_t>(worker) * part_scratch_;
      return parts_[static_cast<std::size_t>(i)].run(arguments, of_worker);
    };
    const bool ok = share_parts(threads_, static_cast<std::int64_t>(parts_.size()), run_part);
    return after_.run(arguments, own) && ok;
  }

 private:
  Block copied(std::size_t i, Block from, const std::optional<Copy>& layouts, bool reads,
               ChainBuilder& before) {
    if (!layouts) return from;
    copy_bytes_[i] = (layouts->to.get_size() + 63) / 64 * 64;
    const Block to = PrimitiveChain::argument(arg_copies + i);
    if (reads) before.copy(from, layouts->from, to, layouts->to);
    return to;
  }

  int threads_;
  std::array<std::size_t, 3> copy_bytes_{};
  PrimitiveChain before_, after_;
  std::vector<PrimitiveChain> parts_;
  std::size_t part_scratch_ = 0;
};

// ------------------------------------------------------------------------------------- empty sums
// k = 0: the product is zero, what follows it is not.
class EmptySum final : public Matmul {
 public:
  explicit EmptySum(const MatmulSpec& s) : s_(s) {}
  std::size_t scratch_bytes() const override { return 0; }
  bool run(const void*, const void*, const void* bias, void* c, void*) const noexcept override {
    if (result_is_empty(s_)) return true;
    if (s_.result == Dtype::f32) {
      fill(static_cast<const float*>(bias), static_cast<float*>(c), 0);
    } else {
      fill(static_cast<const BFloat16*>(bias), static_cast<BFloat16*>(c), 0);
    }
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
        float value = s_.accumulate ? static_cast<float>(x) : 0.0f;
        if (s_.bias) value += static_cast<float>(bias[j]);
        x = T(value);
      }
    }
  }
  const MatmulSpec s_;
};

// ------------------------------------------------------------------------------------------- cache
struct Key {
  MatmulSpec spec;
  int threads;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t h = static_cast<std::size_t>(key.threads);
    const auto mix = [&](std::int64_t x) {
      h = (h ^ static_cast<std::size_t>(x)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    };
    const MatmulSpec& s = key.spec;
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
  if (!is_well_formed(s)) return nullptr;
  if (result_is_empty(s) || s.k == 0) return std::make_shared<EmptySum>(s);
  if (can_gemm_in_parts(s)) return make_gemm_in_parts(s, threads);
  const std::optional<Choice> choice = choose(s, threads);
  if (!choice) return nullptr;
  if (choice->entry == Entry::gemm) return std::make_shared<ProductInParts>(*choice, threads);
  return std::make_shared<Product>(*choice, threads);
}

// Null: the library does not take the spec.
std::shared_ptr<const Matmul> find_or_build(const MatmulSpec& s, int threads) try {
  static std::mutex mutex;
  static std::unordered_map<Key, std::shared_ptr<const Matmul>, KeyHash> made;
  const std::lock_guard lock(mutex);
  const int team = threads > 0 ? team_size(threads) : team_size(default_team_size());
  const Key key{s, team};
  if (const auto found = made.find(key); found != made.end()) return found->second;
  constexpr std::size_t most = 1024;  // then those go that only the cache holds
  if (made.size() >= most)
    std::erase_if(made, [](const auto& m) { return m.second.use_count() <= 1; });
  return made.emplace(key, build(s, team)).first->second;
} catch (const dnnl::error& error) {
  fail<RuntimeError>("matmul: oneDNN failed, got ", error.what());
}

}  // namespace

bool can_matmul(const MatmulSpec& s) { return find_or_build(s, 0) != nullptr; }

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& s, int threads) {
  std::shared_ptr<const Matmul> matmul = find_or_build(s, threads);
  if (matmul == nullptr) {
    fail<RuntimeError>("matmul: oneDNN has no code for this product, got ", s.dtype,
                       " with m=", s.m, ", n=", s.n, ", k=", s.k);
  }
  return matmul;
}

}  // namespace reprise::codegen
