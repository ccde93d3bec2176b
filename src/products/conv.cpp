// A spec becomes one of the library's three primitives (conv_geometry.h) on parts of the operands,
// each on one thread, with reorders into the layouts that it prefers, all in planned scratch. How
// it is cut depends on the spec alone, so that bits are the same with any number of threads. What
// the library has no such code for becomes products of ours (conv_products.h).
#include "products/conv.h"

#include "base/error.h"
#include "base/machine.h"
#include "codegen/openmp.h"
#include "codegen/pool.h"
#include "products/conv_geometry.h"
#include "products/conv_products.h"
#include "products/dnnl_api.h"
#include "products/dnnl_engine.h"
#include "products/primitive_cache.h"

#include <algorithm>
#include <array>
#include <optional>

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
};

struct Layouts {
  Layout x, weights, y;
};

constexpr auto direct = dnnl::algorithm::convolution_direct;

Ints holes(const ConvGeometry& g) {
  Ints dilation = g.dilation;
  for (std::int64_t& d : dilation) --d;  // the library counts holes
  return dilation;
}

dnnl::convolution_forward::primitive_desc forward_desc(const ConvGeometry& g, const Layouts& l) {
  return describe<dnnl::convolution_forward>(dnnl_cpu(), planned_scratch(),
                                             dnnl::prop_kind::forward_training, direct, l.x,
                                             l.weights, l.y, g.stride, holes(g), g.low, g.high);
}

template <class Gradient>
typename Gradient::primitive_desc gradient_desc(const ConvGeometry& g, const Layouts& l) {
  return describe_gradient<Gradient>(dnnl_cpu(), planned_scratch(), forward_desc(g, l), direct, l.x,
                                     l.weights, l.y, g.stride, holes(g), g.low, g.high);
}

template <class Primitive, class Desc>
std::optional<Plan> plan_of(const Desc& desc, Layout x, Layout weights, Layout y) {
  if (!keeps_to_scratchpad(desc)) return std::nullopt;
  return Plan{Primitive(desc), std::move(x), std::move(weights), std::move(y),
              desc.scratchpad_desc()};
}

std::optional<Plan> make_plan(const ConvGeometry& g, const Layouts& l) try {
  switch (g.kind) {
    case ConvGeometry::Kind::forward: {
      const auto desc = forward_desc(g, l);
      return plan_of<dnnl::convolution_forward>(desc, desc.src_desc(), desc.weights_desc(),
                                                desc.dst_desc());
    }
    case ConvGeometry::Kind::data: {
      const auto desc = gradient_desc<dnnl::convolution_backward_data>(g, l);
      return plan_of<dnnl::convolution_backward_data>(desc, desc.diff_src_desc(),
                                                      desc.weights_desc(), desc.diff_dst_desc());
    }
    case ConvGeometry::Kind::weights: {
      const auto desc = gradient_desc<dnnl::convolution_backward_weights>(g, l);
      return plan_of<dnnl::convolution_backward_weights>(
          desc, desc.src_desc(), desc.diff_weights_desc(), desc.diff_dst_desc());
    }
  }
  return std::nullopt;
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw;
  return std::nullopt;  // no implementation for these sizes or layouts
}

// Weights of one group have no dimension for it.
Layout weights_layout(const ConvGeometry& g) {
  const std::ptrdiff_t first = g.weights_dims[0] == 1 ? 1 : 0;
  return Layout(Ints(g.weights_dims.begin() + first, g.weights_dims.end()), f32,
                Ints(g.weights_strides.begin() + first, g.weights_strides.end()));
}

// The operands where they are, if they may be used there, else in the layout that the library
// likes.
std::optional<Plan> best_plan(const ConvGeometry& g) {
  const Layouts given{Layout(g.x_dims, f32, g.x_strides), weights_layout(g),
                      Layout(g.y_dims, f32, g.y_strides)};
  const auto any = [](const Layout& l) {
    return Layout(dims_of(l), f32, dnnl::memory::format_tag::any);
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
    if (const auto plan = make_plan(g, c.layouts)) return plan;
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------- parts
// Along one dimension, into equal parts that do not share a sum: images, or features of the result.
struct Cut {
  std::int64_t parts = 1;
  // The dimension of each operand that is cut; none: all parts read the whole operand.
  std::optional<std::size_t> x, weights, y;
};
constexpr std::size_t images = 0, features = 1, w_groups = 0, w_outputs = 1, w_inputs = 2;

// The most parts that are equal and worth it.
std::int64_t parts_of(std::int64_t size, std::int64_t work) {
  const std::int64_t most = std::min(machine::most_convolution_parts, size);
  std::int64_t parts = std::clamp<std::int64_t>(work / machine::work_worth_threads, 1, most);
  while (size % parts != 0) --parts;
  return parts;
}

Cut best_cut(const ConvGeometry& g) {
  // whole vectors, also in blocked layouts
  constexpr std::int64_t feature_block = 32, some_parts = 4;
  const std::int64_t places = product(g.y_dims) / g.y_dims[features];
  const std::int64_t work = product(g.weights_dims) * places;
  const auto blocks = [&](std::int64_t size) {
    return size % feature_block == 0 ? parts_of(size / feature_block, work) : 1;
  };
  const std::int64_t groups = g.weights_dims[w_groups];
  Cut cut;
  if (g.kind != ConvGeometry::Kind::weights) {
    cut = {parts_of(g.y_dims[images], work), images, std::nullopt, images};
    if (cut.parts >= some_parts) return cut;
  }
  if (groups > 1) {
    const bool is_depthwise = g.weights_dims[w_outputs] == 1;
    const std::int64_t by_groups = is_depthwise ? blocks(groups) : parts_of(groups, work);
    return by_groups > cut.parts ? Cut{by_groups, features, w_groups, features} : cut;
  }
  const bool is_data = g.kind == ConvGeometry::Kind::data;
  const std::int64_t by_features = blocks(g.weights_dims[is_data ? w_inputs : w_outputs]);
  if (by_features <= cut.parts) return cut;
  if (is_data) return {by_features, features, w_inputs, std::nullopt};
  return {by_features, std::nullopt, w_outputs, features};
}

ConvGeometry part_of(ConvGeometry g, const Cut& cut) {
  if (cut.x) g.x_dims[*cut.x] /= cut.parts;
  if (cut.weights) g.weights_dims[*cut.weights] /= cut.parts;
  if (cut.y) g.y_dims[*cut.y] /= cut.parts;
  return g;
}

// ------------------------------------------------------------------------------------------ chains
enum Argument : std::size_t { arg_lhs, arg_rhs, arg_out };
using Arguments = std::array<void*, 3>;

// One of x, weights and y: which argument it is, and as what the primitive takes it.
struct Role {
  Argument argument;
  int in_library;  // DNNL_ARG_...
  Layout given, wanted;
  bool is_copied_before;  // once, for all parts
};

std::array<Role, 3> roles_of(const ConvGeometry& g, const Cut& cut, const Plan& plan) {
  const bool is_forward = g.kind == ConvGeometry::Kind::forward;
  const bool is_data = g.kind == ConvGeometry::Kind::data;
  const Layout x(g.x_dims, f32, g.x_strides), w = weights_layout(g), y(g.y_dims, f32, g.y_strides);
  const auto is_shared = [&](const std::optional<std::size_t>& dim) {
    return cut.parts > 1 && !dim;
  };
  return {Role{is_data ? arg_out : arg_lhs, is_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x, plan.x,
               is_shared(cut.x) && x != plan.x},
          Role{is_forward || is_data ? arg_rhs : arg_out,
               is_forward || is_data ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS, w, plan.weights,
               is_shared(cut.weights) && w != plan.weights},
          Role{is_forward ? arg_out
               : is_data  ? arg_lhs
                          : arg_rhs,
               is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y, plan.y,
               is_shared(cut.y) && y != plan.y}};
}

// Of one part.
PrimitiveChain make_chain(const std::array<Role, 3>& roles, const Plan& plan, int workers) {
  PrimitiveChain chain(workers);
  std::vector<PrimitiveChain::Operand> operands;
  std::optional<std::pair<Block, const Role*>> result;  // in another layout
  for (const Role& r : roles) {
    const Block block = PrimitiveChain::argument(r.argument);
    const bool is_there = r.given == r.wanted || r.is_copied_before;
    const Block at = is_there ? block : chain.temporary(r.wanted.get_size());
    if (!is_there && r.argument != arg_out) {
      chain.add_copy(block, no_bytes(r.given), at, no_bytes(r.wanted));
    }
    if (!is_there && r.argument == arg_out) result = {at, &r};
    operands.push_back({r.in_library, chain.place(at, no_bytes(r.wanted))});
  }
  chain.add(plan.primitive, no_bytes(plan.scratchpad), std::move(operands));
  if (result) {
    const auto& [at, role] = *result;
    chain.add_copy(at, no_bytes(role->wanted), PrimitiveChain::argument(arg_out),
                   no_bytes(role->given));
  }
  return chain;
}

// Of what all parts read, from the first argument to the second.
PrimitiveChain copy_chain(const Role& r) {
  PrimitiveChain chain(1);
  chain.add_copy(PrimitiveChain::argument(0), no_bytes(r.given), PrimitiveChain::argument(1),
                 no_bytes(r.wanted));
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
  Cut cut;
  bool turns = false;
};
std::optional<Choice> choose(const ConvSpec& s) {
  for (const bool turns : {false, true}) {
    for (const ConvGeometry& g : geometries(turns ? turned(s) : s)) {
      const Cut cut = best_cut(g);
      if (best_plan(part_of(g, cut))) return Choice{g, cut, turns};
    }
  }
  return std::nullopt;
}

class LibraryConvolution final : public Convolution {
 public:
  LibraryConvolution(const ConvSpec& s, const Choice& choice, int threads)
      : s_(s),
        cut_(choice.cut),
        threads_(static_cast<int>(std::min<std::int64_t>(threads, cut_.parts))),
        turned_bytes_(
            choice.turns ? aligned(sizeof(float) * static_cast<std::size_t>(rhs_elements(s))) : 0),
        part_(1) {
    const ConvGeometry part = part_of(choice.geometry, cut_);
    const auto plan = best_plan(part);
    if (!plan) fail<RuntimeError>("convolution: oneDNN refuses what it takes");
    const std::array<Role, 3> roles = roles_of(part, cut_, *plan);
    part_ = make_chain(roles, *plan, threads_);
    const auto start = [](const std::optional<std::size_t>& dim, const Ints& dims,
                          const Ints& strides) {
      return dim ? dims[*dim] * strides[*dim] * static_cast<std::int64_t>(sizeof(float)) : 0;
    };
    steps_[roles[0].argument] = start(cut_.x, part.x_dims, part.x_strides);
    steps_[roles[1].argument] = start(cut_.weights, part.weights_dims, part.weights_strides);
    steps_[roles[2].argument] = start(cut_.y, part.y_dims, part.y_strides);
    for (const Role& r : roles) {
      if (r.is_copied_before)
        copies_.push_back({r.argument, aligned(r.wanted.get_size()), copy_chain(r)});
    }
  }

  std::size_t scratch_bytes() const override {
    std::size_t own = part_stride() * static_cast<std::size_t>(threads_), shared = 0;
    for (const Copied& c : copies_) {
      shared += c.bytes;
      own = std::max(own, aligned(c.chain.scratch_bytes()));
    }
    return turned_bytes_ + shared + own;
  }
  bool run(const void* lhs, const void* rhs, void* out, void* scratch) const noexcept override {
    auto* own = static_cast<std::byte*>(scratch) + turned_bytes_;
    if (turned_bytes_ != 0) {
      auto* to = static_cast<float*>(scratch);
      turn(s_, 0, static_cast<const float*>(rhs), to);
      rhs = scratch;
    }
    Arguments arguments{const_cast<void*>(lhs), const_cast<void*>(rhs), out};
    const OneLibraryThread one;
    for (const Copied& c : copies_) {
      const std::array<void*, 2> ends{arguments[c.argument], own};
      own += c.bytes;
      if (!c.chain.run(ends, own, 0)) return false;
      arguments[c.argument] = ends[1];
    }
    return share_parts(threads_, cut_.parts, [&](std::int64_t worker, std::int64_t i) {
      Arguments moved = arguments;
      for (std::size_t x = 0; x < moved.size(); ++x) {
        moved[x] = static_cast<std::byte*>(moved[x]) + i * steps_[x];
      }
      const auto thread = static_cast<std::size_t>(worker);
      return part_.run(moved, own + thread * part_stride(), thread);
    });
  }

 private:
  std::size_t part_stride() const { return aligned(part_.scratch_bytes()); }
  struct Copied {
    Argument argument;
    std::size_t bytes;
    PrimitiveChain chain;
  };

  ConvSpec s_;
  Cut cut_;
  int threads_;
  std::size_t turned_bytes_;
  PrimitiveChain part_;
  std::array<std::int64_t, 3> steps_{};  // of the arguments from part to part, bytes
  std::vector<Copied> copies_;           // for all parts
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
  const OneLibraryThread one;
  if (const std::optional<Choice> choice = choose(s))
    return std::make_shared<LibraryConvolution>(s, *choice, threads);
  return make_conv_products(s, threads);
}

struct SpecHash {
  std::size_t operator()(const ConvSpec& s) const {
    std::size_t h = 0;
    const auto mix = [&](std::int64_t x) {
      h = (h ^ static_cast<std::size_t>(x)) * 0x100000001b3u;
    };
    for (std::int64_t x : {s.batch, s.lhs_features, s.out_features}) mix(x);
    for (const Ints* sizes : {&s.in, &s.window, &s.out}) {
      for (std::int64_t x : *sizes) mix(x);
    }
    return h;
  }
};
using Made = PrimitiveCache<ConvSpec, Convolution, SpecHash>;
Made& made() {
  constexpr std::size_t most = 64;     // the library's code: some 100 KiB each
  static Made& all = *new Made(most);  // never destroyed: someone may compute until the very end
  return all;
}

// Null: nothing here takes the spec.
std::shared_ptr<const Convolution> find_or_build(const ConvSpec& s, int threads) try {
  return made().find_or_make(s, threads, build);
} catch (const dnnl::error& error) {
  fail<RuntimeError>("convolution: oneDNN failed, got ", error.what());
}

}  // namespace

bool can_convolve(const ConvSpec& s) { return find_or_build(s, 1) != nullptr; }

void release_unused_convolutions() { made().release(); }

std::shared_ptr<const Convolution> make_convolution(const ConvSpec& s, int threads) {
  std::shared_ptr<const Convolution> convolution = find_or_build(s, threads);
  // made before the end of the process
  if (convolution == nullptr) convolution = find_or_build(s, 1);
  if (convolution == nullptr) {
    fail<RuntimeError>("convolution: there is no fast code for it, got ", s.dtype, " with ",
                       s.in.size(), " spatial dimensions");
  }
  return convolution;
}

}  // namespace reprise::codegen
