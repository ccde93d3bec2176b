// A spec becomes one of the library's three primitives (conv_geometry.h), with reorders into the
// layouts that it prefers, all in planned scratch.
#include "codegen/conv.h"

#include "base/error.h"
#include "base/memory.h"
#include "codegen/conv_geometry.h"
#include "codegen/dnnl_engine.h"
#include "codegen/openmp.h"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;
using Layout = dnnl::memory::desc;
using Block = PrimitiveChain::Block;
constexpr auto f32 = dnnl::memory::data_type::f32;

Ints joined(std::initializer_list<std::int64_t> front, const Ints& back) {
  Ints out(front);
  out.insert(out.end(), back.begin(), back.end());
  return out;
}

// ------------------------------------------------------------------------------------- descriptors
dnnl::memory no_bytes(const Layout& l) { return {l, dnnl_cpu(), nullptr}; }

// What the primitive works on. For gradients, weights or x is the result.
struct Plan {
  dnnl::primitive primitive;
  Layout x, weights, y, scratchpad;
  std::string_view implementation;
};

struct Layouts {
  Layout x, weights, y;
};

dnnl::primitive_attr planned_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::convolution_forward::primitive_desc forward_desc(const ConvGeometry& g, const Layouts& l) {
  Ints dilation = g.dilation;
  for (std::int64_t& d : dilation) --d;  // the library counts holes
  return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, l.x, l.weights,
           l.y, g.stride, dilation, g.low, g.high},
          planned_scratch(),
          dnnl_cpu()};
}

template <class Desc>
Plan plan_of(const Desc& desc, const dnnl::primitive& primitive, Layout x, Layout weights,
             Layout y) {
  return {primitive,    std::move(x),           std::move(weights),
          std::move(y), desc.scratchpad_desc(), desc.impl_info_str()};
}

std::optional<Plan> make_plan(const ConvGeometry& g, const Layouts& l) try {
  Ints dilation = g.dilation;
  for (std::int64_t& d : dilation) --d;
  const auto direct = dnnl::algorithm::convolution_direct;
  switch (g.kind) {
    case ConvGeometry::Kind::forward: {
      const auto desc = forward_desc(g, l);
      return plan_of(desc, dnnl::convolution_forward(desc), desc.src_desc(), desc.weights_desc(),
                     desc.dst_desc());
    }
    case ConvGeometry::Kind::data: {
      const dnnl::convolution_backward_data::primitive_desc desc(
          {direct, l.x, l.weights, l.y, g.stride, dilation, g.low, g.high}, planned_scratch(),
          dnnl_cpu(), forward_desc(g, l));
      return plan_of(desc, dnnl::convolution_backward_data(desc), desc.diff_src_desc(),
                     desc.weights_desc(), desc.diff_dst_desc());
    }
    case ConvGeometry::Kind::weights: {
      const dnnl::convolution_backward_weights::primitive_desc desc(
          {direct, l.x, l.weights, l.y, g.stride, dilation, g.low, g.high}, planned_scratch(),
          dnnl_cpu(), forward_desc(g, l));
      return plan_of(desc, dnnl::convolution_backward_weights(desc), desc.src_desc(),
                     desc.diff_weights_desc(), desc.diff_dst_desc());
    }
  }
  return std::nullopt;
} catch (const dnnl::error&) {
  return std::nullopt;  // no implementation for these sizes or layouts
}

// Weights of one group have no dimension for it.
Layout weights_layout(const ConvGeometry& g) {
  const std::ptrdiff_t first = g.weights_dims[0] == 1 ? 1 : 0;
  return Layout(Ints(g.weights_dims.begin() + first, g.weights_dims.end()), f32,
                Ints(g.weights_strides.begin() + first, g.weights_strides.end()));
}

// Code that keeps to the scratchpad comes first. gemm allocates for itself; plain reference code is
// slower than evaluation.
enum class Entry { planned, gemm };
bool is_of(Entry entry, std::string_view implementation) {
  const auto names = [&](const char* part) {
    return implementation.find(part) != std::string_view::npos;
  };
  return entry == Entry::gemm ? names("gemm:") : !names("gemm:") && !names("ref");
}

// The operands where they are, if they may be used there, else in the layout that the library
// likes.
std::optional<Plan> best_plan(const ConvGeometry& g, Entry entry) {
  const Layouts given{Layout(g.x_dims, f32, g.x_strides), weights_layout(g),
                      Layout(g.y_dims, f32, g.y_strides)};
  const auto any = [](const Layout& l) {
    return Layout(l.dims(), f32, dnnl::memory::format_tag::any);
  };
  struct Candidate {
    Layouts layouts;
    std::int64_t copied;
  };
  std::vector<Candidate> candidates;
  for (unsigned copies = 0; copies < 8; ++copies) {
    Candidate c{given, 0};
    if ((copies & 1u) != 0) c.layouts.x = any(given.x), c.copied += product(g.x_dims);
    if ((copies & 2u) != 0)
      c.layouts.weights = any(given.weights), c.copied += product(g.weights_dims);
    if ((copies & 4u) != 0) c.layouts.y = any(given.y), c.copied += product(g.y_dims);
    candidates.push_back(std::move(c));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.copied < b.copied; });
  for (const Candidate& c : candidates) {
    const auto plan = make_plan(g, c.layouts);
    if (plan && is_of(entry, plan->implementation)) return plan;
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------ chains
enum Argument : std::size_t { arg_lhs, arg_rhs, arg_out };

PrimitiveChain make_chain(const ConvGeometry& g, const Plan& plan) {
  PrimitiveChain chain;
  const auto copy = [&](Block from, const Layout& from_layout, Block to, const Layout& to_layout) {
    const dnnl::reorder::primitive_desc desc(dnnl_cpu(), from_layout, dnnl_cpu(), to_layout,
                                             planned_scratch());
    chain.add(dnnl::reorder(desc), no_bytes(desc.scratchpad_desc()),
              {{DNNL_ARG_FROM, chain.place(from, no_bytes(from_layout))},
               {DNNL_ARG_TO, chain.place(to, no_bytes(to_layout))}});
  };
  const auto operand = [&](std::size_t argument, const Layout& given, const Layout& wanted) {
    const Block block = PrimitiveChain::argument(argument);
    if (given == wanted) return chain.place(block, no_bytes(given));
    const Block temporary = chain.temporary(wanted.get_size());
    copy(block, given, temporary, wanted);
    return chain.place(temporary, no_bytes(wanted));
  };
  const Layout x(g.x_dims, f32, g.x_strides), w = weights_layout(g), y(g.y_dims, f32, g.y_strides);
  const bool is_forward = g.kind == ConvGeometry::Kind::forward;
  const bool is_data = g.kind == ConvGeometry::Kind::data;
  const Layout& result = is_forward ? y : is_data ? x : w;
  const Layout& wanted = is_forward ? plan.y : is_data ? plan.x : plan.weights;
  const Block out = PrimitiveChain::argument(arg_out);
  const Block at = result == wanted ? out : chain.temporary(wanted.get_size());
  std::vector<PrimitiveChain::Operand> operands;
  if (is_forward) {
    operands = {{DNNL_ARG_SRC, operand(arg_lhs, x, plan.x)},
                {DNNL_ARG_WEIGHTS, operand(arg_rhs, w, plan.weights)},
                {DNNL_ARG_DST, chain.place(at, no_bytes(wanted))}};
  } else if (is_data) {
    operands = {{DNNL_ARG_DIFF_DST, operand(arg_lhs, y, plan.y)},
                {DNNL_ARG_WEIGHTS, operand(arg_rhs, w, plan.weights)},
                {DNNL_ARG_DIFF_SRC, chain.place(at, no_bytes(wanted))}};
  } else {
    operands = {{DNNL_ARG_SRC, operand(arg_lhs, x, plan.x)},
                {DNNL_ARG_DIFF_DST, operand(arg_rhs, y, plan.y)},
                {DNNL_ARG_DIFF_WEIGHTS, chain.place(at, no_bytes(wanted))}};
  }
  chain.add(plan.primitive, no_bytes(plan.scratchpad), std::move(operands));
  if (result != wanted) copy(at, wanted, out, result);
  return chain;
}

// ------------------------------------------------------------------------------------ turned
// windows
std::int64_t rhs_elements(const ConvSpec& s) {
  return s.out_features * (s.lhs_features / s.feature_groups) * product(s.window);
}
void turn(const ConvSpec& s, std::size_t d, const float* from, float*& to) noexcept {
  if (d == s.window.size() + 2) {
    *to++ = *from;
    return;
  }
  const bool is_spatial = d >= 2;
  const std::int64_t size = is_spatial ? s.window[d - 2]
                            : d == 0   ? s.out_features
                                       : s.lhs_features / s.feature_groups;
  for (std::int64_t i = 0; i < size; ++i) {
    turn(s, d + 1, from + (is_spatial ? size - 1 - i : i) * s.rhs_strides[d], to);
  }
}

// ----------------------------------------------------------------------------------------- objects
std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// The first geometry that the library is fast for, and whether it needs the window turned.
struct Choice {
  ConvGeometry geometry;
  Entry entry = Entry::planned;
  bool turns = false;
};
std::optional<Choice> choose(const ConvSpec& s) {
  for (const Entry entry : {Entry::planned, Entry::gemm}) {
    for (const bool turns : {false, true}) {
      for (const ConvGeometry& g : geometries(turns ? turned(s) : s)) {
        if (best_plan(g, entry)) return Choice{g, entry, turns};
      }
    }
  }
  return std::nullopt;
}

// In gradients of weights and in gemm the library divides sums among threads: one thread keeps bits
// the same for any number.
bool divides_sums(const Choice& choice) {
  return choice.entry == Entry::gemm || choice.geometry.kind == ConvGeometry::Kind::weights;
}

PrimitiveChain chain_for(const Choice& choice, int threads) {
  const TeamScope team(threads);
  const auto plan = best_plan(choice.geometry, choice.entry);
  if (!plan) fail<RuntimeError>("convolution: oneDNN refuses what it takes for other threads");
  return make_chain(choice.geometry, *plan);
}

class LibraryConvolution final : public Convolution {
 public:
  LibraryConvolution(const ConvSpec& s, const Choice& choice, int threads)
      : s_(s),
        threads_(divides_sums(choice) ? 1 : threads),
        hidden_bytes_(choice.entry == Entry::gemm ? 4u << 20 : 0),  // measured: 3.6 MiB
        turned_bytes_(
            choice.turns ? aligned(sizeof(float) * static_cast<std::size_t>(rhs_elements(s))) : 0),
        serial_(chain_for(choice, 1)),
        parallel_(threads_ > 1 ? chain_for(choice, threads_) : PrimitiveChain()) {}

  std::size_t scratch_bytes() const override {
    return turned_bytes_ + std::max(serial_.scratch_bytes(), parallel_.scratch_bytes());
  }
  std::size_t hidden_bytes() const override { return hidden_bytes_; }
  bool run(const void* lhs, const void* rhs, void* out, void* scratch) const noexcept override {
    if (turned_bytes_ != 0) {
      auto* to = static_cast<float*>(scratch);
      turn(s_, 0, static_cast<const float*>(rhs), to);
      rhs = scratch;
    }
    const std::array<void*, 3> arguments{const_cast<void*>(lhs), const_cast<void*>(rhs), out};
    const bool alone = threads_ == 1 || team_size(threads_) < threads_;
    const LibraryMemory library(hidden_bytes_);
    const TeamScope team(alone ? 1 : threads_);
    return (alone ? serial_ : parallel_)
        .run(arguments, static_cast<std::byte*>(scratch) + turned_bytes_);
  }

 private:
  ConvSpec s_;
  int threads_;
  std::size_t hidden_bytes_, turned_bytes_;
  PrimitiveChain serial_;    // also for runs inside a parallel region
  PrimitiveChain parallel_;  // made for exactly threads_ threads
};

class Zeros final : public Convolution {
 public:
  explicit Zeros(const ConvSpec& s)
      : dims_(joined({s.batch / s.batch_groups, s.out_features}, s.out)), strides_(s.out_strides) {}
  std::size_t scratch_bytes() const override { return 0; }
  bool run(const void*, const void*, void* out, void*) const noexcept override {
    fill(static_cast<float*>(out), 0);
    return true;
  }

 private:
  void fill(float* out, std::size_t d) const noexcept {
    if (d == dims_.size()) {
      *out = 0;
      return;
    }
    for (std::int64_t i = 0; i < dims_[d]; ++i) fill(out + i * strides_[d], d + 1);
  }
  Ints dims_, strides_;
};

std::shared_ptr<const Convolution> build(const ConvSpec& given, int threads) {
  if (!is_well_formed(given)) return nullptr;
  if (result_is_empty(given) || sum_is_empty(given)) return std::make_shared<Zeros>(given);
  const ConvSpec s = with_a_dimension(given);
  const TeamScope team(threads);
  const std::optional<Choice> choice = choose(s);
  if (!choice) return nullptr;
  return std::make_shared<LibraryConvolution>(s, *choice, threads);
}

// Null: the library does not take the spec.
std::shared_ptr<const Convolution> find_or_build(const ConvSpec& s, int threads) try {
  struct Made {
    ConvSpec spec;
    int threads;
    std::shared_ptr<const Convolution> convolution;
  };
  static std::mutex mutex;
  static std::vector<Made> made;  // programs have few
  const std::lock_guard lock(mutex);
  const int team = team_size(threads > 0 ? threads : default_team_size());
  for (const Made& m : made) {
    if (m.threads == team && m.spec == s) return m.convolution;
  }
  constexpr std::size_t most = 512;  // then those go that only the cache holds
  if (made.size() >= most)
    std::erase_if(made, [](const Made& m) { return m.convolution.use_count() <= 1; });
  return made.emplace_back(Made{s, team, build(s, team)}).convolution;
} catch (const dnnl::error& error) {
  fail<RuntimeError>("convolution: oneDNN failed, got ", error.what());
}

}  // namespace

bool can_convolve(const ConvSpec& s) { return find_or_build(s, 0) != nullptr; }

std::shared_ptr<const Convolution> make_convolution(const ConvSpec& s, int threads) {
  std::shared_ptr<const Convolution> convolution = find_or_build(s, threads);
  if (convolution == nullptr) {
    fail<RuntimeError>("convolution: oneDNN has no fast code for it, got ", s.dtype, " with ",
                       s.in.size(), " spatial dimensions");
  }
  return convolution;
}

}  // namespace reprise::codegen
