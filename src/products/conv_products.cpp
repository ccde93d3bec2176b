#include "products/conv_products.h"

#include "codegen/pool.h"
#include "products/tiled_dot.h"

#include <algorithm>
#include <optional>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;
using Kind = ConvGeometry::Kind;
constexpr std::size_t image = 0, feature = 1, first_place = 2;          // dimensions of x and y
constexpr std::size_t group = 0, output = 1, input = 2, first_tap = 3;  // of the weights

struct Way {
  ConvGeometry geometry;
  bool is_reversed = false;  // the weights, along the window
};

// The first geometry that takes the spec; for those whose weights are rhs it may be read backwards.
std::optional<Way> way_of(const ConvSpec& s) {
  for (const bool is_reversed : {false, true}) {
    ConvSpec spec = s;
    if (is_reversed) spec.reverse_window = !spec.reverse_window;
    for (const ConvGeometry& g : geometries(spec)) {
      if (!is_reversed || g.kind != Kind::weights) return Way{g, is_reversed};
    }
  }
  return std::nullopt;
}

// A dimension of places that a tap connects, with the steps of both operands along it.
struct Places {
  std::int64_t count, x, y;
};

// One place of the window: where operands start, and which of their places it connects.
struct Tap {
  std::int64_t x = 0, weights = 0, y = 0;  // elements
  std::vector<Places> places;
};

std::optional<Tap> tap_at(const Way& way, std::int64_t index) {
  const ConvGeometry& g = way.geometry;
  Tap tap;
  for (std::size_t d = g.stride.size(); d-- > 0;) {
    const std::int64_t window = g.weights_dims[first_tap + d], w = index % window;
    index /= window;
    // x = y step + shift
    const std::int64_t step = g.stride[d], shift = w * g.dilation[d] - g.low[d];
    const std::int64_t in = g.x_dims[first_place + d], out = g.y_dims[first_place + d];
    const std::int64_t first = shift >= 0 ? 0 : (-shift + step - 1) / step;
    const std::int64_t end = in <= shift ? 0 : std::min(out, (in - 1 - shift) / step + 1);
    if (end <= first) return std::nullopt;
    const std::int64_t x_step = g.x_strides[first_place + d], y_step = g.y_strides[first_place + d];
    tap.x += (first * step + shift) * x_step;
    tap.y += first * y_step;
    tap.weights += (way.is_reversed ? window - 1 - w : w) * g.weights_strides[first_tap + d];
    tap.places.insert(tap.places.begin(), {end - first, step * x_step, y_step});
  }
  return tap;
}

// Neighbours that are one dimension for both operands become one; then the longest is last.
std::vector<Places> joined(std::vector<Places> places) {
  for (std::size_t d = places.size() - 1; d-- > 0;) {
    const Places outer = places[d], inner = places[d + 1];
    const bool continues = outer.x == inner.count * inner.x && outer.y == inner.count * inner.y;
    if (!continues) continue;
    places[d] = {outer.count * inner.count, inner.x, inner.y};
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  }
  const auto longest =
      std::max_element(places.begin(), places.end(),
                       [](const Places& a, const Places& b) { return a.count < b.count; });
  std::iter_swap(longest, places.end() - 1);
  return places;
}

struct Steps {
  std::int64_t groups, outputs, inputs;  // sizes of the weights
  std::int64_t x_group, x_input, y_group, y_output;
  std::int64_t w_group, w_output, w_input;
};
Steps steps_of(const ConvGeometry& g) {
  const std::int64_t outputs = g.weights_dims[output], inputs = g.weights_dims[input];
  return {g.weights_dims[group],
          outputs,
          inputs,
          inputs * g.x_strides[feature],
          g.x_strides[feature],
          outputs * g.y_strides[feature],
          g.y_strides[feature],
          g.weights_strides[group],
          g.weights_strides[output],
          g.weights_strides[input]};
}

// forward   y[n, g, p, o] += x[n, g, p', i] weights[g, o, i]
// data      x[n, g, p', i] += y[n, g, p, o] weights[g, o, i]
MatmulSpec product_of_places(const ConvGeometry& g, const Tap& tap) {
  const Steps s = steps_of(g);
  const bool is_forward = g.kind == Kind::forward;
  Ints x{g.x_strides[image], s.x_group}, y{g.y_strides[image], s.y_group}, weights{0, s.w_group};
  MatmulSpec spec;
  spec.batch = {g.x_dims[image], s.groups};
  const std::vector<Places> places = joined(tap.places);
  for (std::size_t d = 0; d + 1 < places.size(); ++d) {
    spec.batch.push_back(places[d].count);
    x.push_back(places[d].x);
    y.push_back(places[d].y);
    weights.push_back(0);
  }
  x.insert(x.end(), {places.back().x, s.x_input});
  y.insert(y.end(), {places.back().y, s.y_output});
  spec.m = places.back().count;
  spec.n = is_forward ? s.outputs : s.inputs;
  spec.k = is_forward ? s.inputs : s.outputs;
  spec.a_strides = is_forward ? x : y;
  spec.c_strides = is_forward ? y : x;
  weights.insert(weights.end(),
                 {is_forward ? s.w_input : s.w_output, is_forward ? s.w_output : s.w_input});
  spec.b_strides = weights;
  spec.accumulate = true;
  return spec;
}

// weights[g, o, i] += y[g, o, p] x[g, p', i], for each of the other places
MatmulSpec product_of_features(const ConvGeometry& g, const Places& places) {
  const Steps s = steps_of(g);
  MatmulSpec spec;
  spec.batch = {s.groups};
  spec.m = s.outputs;
  spec.n = s.inputs;
  spec.k = places.count;
  spec.a_strides = {s.y_group, s.y_output, places.y};
  spec.b_strides = {s.x_group, places.x, s.x_input};
  spec.c_strides = {s.w_group, s.w_output, s.w_input};
  spec.accumulate = true;
  return spec;
}

// Zeros everywhere in a view.
void clear(float* to, const Ints& dims, const Ints& strides, std::size_t d = 0) noexcept {
  std::int64_t last = 0, elements = 1;
  for (std::size_t i = d; i < dims.size(); ++i) {
    last += (dims[i] - 1) * strides[i];
    elements *= dims[i];
  }
  if (last + 1 == elements) {
    std::fill(to, to + elements, 0.0f);
    return;
  }
  for (std::int64_t i = 0; i < dims[d]; ++i) clear(to + i * strides[d], dims, strides, d + 1);
}

class ConvProducts final : public Convolution {
 public:
  ConvProducts(const Way& way, int threads) : g_(way.geometry) {
    const std::int64_t window =
        product({g_.weights_dims.begin() + first_tap, g_.weights_dims.end()});
    for (std::int64_t i = 0; i < window; ++i) {
      if (auto tap = tap_at(way, i)) taps_.push_back({std::move(*tap), {}, nullptr});
    }
    // Taps of a gradient of weights have results of their own.
    shares_taps_ = g_.kind == Kind::weights && std::ssize(taps_) >= threads;
    workers_ = shares_taps_ ? threads : 1;
    for (Part& part : taps_) prepare(part, shares_taps_ ? 1 : threads);
  }
  std::size_t scratch_bytes() const override {
    return worker_bytes_ * static_cast<std::size_t>(workers_);
  }
  bool run(const void* lhs, const void* rhs, void* out, void* scratch) const noexcept override {
    const auto result = static_cast<float*>(out);
    const auto a = static_cast<const float*>(lhs), b = static_cast<const float*>(rhs);
    switch (g_.kind) {
      case Kind::forward: clear(result, g_.y_dims, g_.y_strides); break;
      case Kind::data: clear(result, g_.x_dims, g_.x_strides); break;
      case Kind::weights: clear(result, g_.weights_dims, g_.weights_strides); break;
    }
    const auto bytes = static_cast<std::byte*>(scratch);
    if (!shares_taps_) {
      return std::all_of(taps_.begin(), taps_.end(),
                         [&](const Part& part) { return run_tap(part, a, b, result, bytes); });
    }
    return share_parts(workers_, std::ssize(taps_), [&](std::int64_t worker, std::int64_t i) {
      std::byte* const own = bytes + static_cast<std::size_t>(worker) * worker_bytes_;
      return run_tap(taps_[static_cast<std::size_t>(i)], a, b, result, own);
    });
  }

 private:
  struct Part {
    Tap tap;
    std::vector<Places> others;  // places that are summed one after the other
    std::shared_ptr<const Matmul> matmul;
  };

  void prepare(Part& part, int threads) {
    MatmulSpec spec;
    if (g_.kind == Kind::weights) {
      std::vector<Places> all = part.tap.places;
      all.insert(all.begin(), {g_.x_dims[image], g_.x_strides[image], g_.y_strides[image]});
      all = joined(std::move(all));
      spec = product_of_features(g_, all.back());
      all.pop_back();
      part.others = std::move(all);
    } else {
      spec = product_of_places(g_, part.tap);
    }
    const auto known = std::find(specs_.begin(), specs_.end(), spec);
    const auto at = static_cast<std::size_t>(known - specs_.begin());
    if (known == specs_.end()) {
      specs_.push_back(spec);
      matmuls_.push_back(make_tiled_dot(spec, threads));
      worker_bytes_ = std::max(worker_bytes_, (matmuls_.back()->scratch_bytes() + 63) / 64 * 64);
    }
    part.matmul = matmuls_[at];
  }
  bool run_tap(const Part& part, const float* lhs, const float* rhs, float* out,
               std::byte* scratch) const noexcept {
    const Tap& t = part.tap;
    switch (g_.kind) {
      case Kind::forward:
        return part.matmul->run(lhs + t.x, rhs + t.weights, nullptr, out + t.y, scratch);
      case Kind::data:
        return part.matmul->run(lhs + t.y, rhs + t.weights, nullptr, out + t.x, scratch);
      case Kind::weights: return sum(part, 0, rhs + t.y, lhs + t.x, out + t.weights, scratch);
    }
    return false;
  }
  static bool sum(const Part& part, std::size_t d, const float* y, const float* x, float* weights,
                  std::byte* scratch) noexcept {
    if (d == part.others.size()) return part.matmul->run(y, x, nullptr, weights, scratch);
    const Places& p = part.others[d];
    for (std::int64_t i = 0; i < p.count; ++i) {
      if (!sum(part, d + 1, y + i * p.y, x + i * p.x, weights, scratch)) return false;
    }
    return true;
  }

  ConvGeometry g_;
  std::vector<Part> taps_;
  std::vector<MatmulSpec> specs_;
  std::vector<std::shared_ptr<const Matmul>> matmuls_;
  bool shares_taps_ = false;
  int workers_ = 1;
  std::size_t worker_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Convolution> make_conv_products(const ConvSpec& s, int threads) {
  const std::optional<Way> way = way_of(s);
  return way ? std::make_shared<const ConvProducts>(*way, threads) : nullptr;
}

}  // namespace reprise::codegen
