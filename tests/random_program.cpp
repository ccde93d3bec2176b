#include "random_program.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace random_program {
namespace {

using rp::Array;
using rp::Arrays;
using rp::Shape;
using Body = std::function<Arrays(Arrays)>;

// The same numbers with every compiler and standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  // [-1, 1)
  double real() { return static_cast<double>(next() >> 11) / 9007199254740992.0 * 2 - 1; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  std::uint64_t state_;
};

const std::vector<std::string> names = {"a", "b"};

std::vector<std::string> some_names(Random& random) {
  std::vector<std::string> some;
  for (const std::string& name : names) {
    if (random.chance(50)) some.push_back(name);
  }
  return some;
}

bool depends_on_labels(const PolicyRecipe& r) {
  return r.kind == PolicyKind::anything_except ||
         std::any_of(r.parts.begin(), r.parts.end(), depends_on_labels);
}

PolicyRecipe policy(Random& random, int depth) {
  PolicyRecipe recipe;
  const int kinds = static_cast<int>(PolicyKind::either) + (depth > 0 ? 3 : 0);
  recipe.kind = static_cast<PolicyKind>(random.below(kinds));
  recipe.names = some_names(random);
  for (const std::string& name : names) {
    const bool saved =
        std::find(recipe.names.begin(), recipe.names.end(), name) != recipe.names.end();
    if (!saved && random.chance(50)) recipe.offloaded.push_back(name);
  }
  recipe.bytes = 8u << random.below(5);
  if (recipe.kind >= PolicyKind::either) {
    recipe.parts.push_back(policy(random, depth - 1));
    recipe.parts.push_back(policy(random, depth - 1));
  }
  // Names of a value can be seen only as long as something reads the named one: a test that looks
  // at the result could not tell that a value was saved because it had a name.
  if (recipe.kind == PolicyKind::neither && depends_on_labels(recipe.parts[0]))
    recipe.kind = PolicyKind::either;
  return recipe;
}

// ------------------------------------------------------------------------------------- operations
// Each keeps values of order one.
bool fits(const Array& x, const Shape& shape) {
  if (x.shape().size() > shape.size()) return false;
  return std::equal(
      x.shape().rbegin(), x.shape().rend(), shape.rbegin(),
      [](std::int64_t mine, std::int64_t wanted) { return mine == 1 || mine == wanted; });
}
// x if it broadcasts to the shape, else one number made of it.
Array fit(const Array& x, const Shape& shape) { return fits(x, shape) ? x : rp::mean(x); }

Array unary(Random& random, const Array& x) {
  switch (random.below(18)) {
    case 0: return rp::sin(x);
    case 1: return rp::cos(x);
    case 2: return rp::tanh(x);
    case 3: return rp::nn::sigmoid(x);
    case 4: return rp::exp(-rp::square(x));
    case 5: return rp::log1p(rp::square(x));
    case 6: return 0.5 * rp::sqrt(1.0 + rp::square(x));
    case 7: return rp::arctan(x);
    case 8: return rp::abs(x) * 0.5;
    case 9: return rp::power(rp::sin(x), 3);
    case 10: return rp::erf(x);
    case 11: return rp::clip(x, -1.0, 1.0);
    case 12: return rp::nn::relu(x);
    case 13: return rp::nn::gelu(rp::sin(x));
    case 14: return x.ndim() > 0 ? rp::nn::softmax(x) : rp::nn::silu(x);
    case 15: return x.ndim() > 0 ? rp::nn::standardize(x, -1, 0.5) : -x;
    case 16: return rp::where(x > 0.1, x, 0.5 * x);
    default: return rp::stop_gradient(rp::sin(x)) * rp::cos(x);
  }
}

Array binary(Random& random, const Array& x, const Array& given) {
  const Array y = fit(given, x.shape());
  switch (random.below(9)) {
    case 0: return 0.5 * (x + y);
    case 1: return 0.5 * (x - y);
    case 2: return rp::sin(x) * y;
    case 3: return x / (2.0 + rp::square(y));
    case 4: return rp::maximum(x, y);
    case 5: return rp::minimum(x, y);
    case 6: return rp::where(x < y, 0.5 * x, y);
    case 7: return rp::arctan2(x, 2.0 + rp::square(y));
    default: return rp::power(1.5 + rp::sin(x), y);
  }
}

Array small(const Array& x) { return x.size() <= 64 && x.ndim() <= 3 ? x : rp::mean(x, 0); }

Array reshaped(Random& random, const Array& x) {
  const std::int64_t rank = x.ndim();
  const std::int64_t axis = rank == 0 ? 0 : random.below(rank);
  const std::int64_t choice = random.below(12);
  if (rank == 0) return choice < 6 ? rp::broadcast_to(x, {2, 3}) : rp::expand_dims(x, 0);
  switch (choice) {
    case 0: return rp::transpose(x);
    case 1: return rp::ravel(x);
    case 2: return rp::flip(x, axis);
    case 3: return x[0];
    case 4: return x[rp::slice(0, x.shape(0) > 1 ? x.shape(0) - 1 : 1)];
    case 5: return small(rp::concatenate({x, rp::sin(x)}, axis));
    case 6: return small(rp::pad(x, 1, 0.5));
    case 7: return small(rp::stack({x, rp::cos(x)}, axis));
    case 8: return rp::roll(x, 1, axis);
    case 9: return rank < 3 ? rp::expand_dims(x, axis) : rp::squeeze(rp::mean(x, axis, true));
    case 10: return rp::take(x, rp::array({0, 1, 0}), axis, {.mode = rp::IndexMode::clip});
    default: return x.at(0).add(0.25);
  }
}

Array reduced(Random& random, const Array& x) {
  const bool keep = random.chance(50);
  const std::int64_t axis = x.ndim() == 0 ? 0 : random.below(x.ndim());
  const std::int64_t choice = random.below(9);
  if (x.ndim() == 0) return rp::sin(x);
  switch (choice) {
    case 0: return rp::sum(x, axis, keep) / static_cast<double>(x.shape(axis));
    case 1: return rp::mean(x, axis, keep);
    case 2: return rp::max(x, axis, keep);
    case 3: return rp::min(x, axis, keep);
    case 4: return 0.5 * rp::logsumexp(x, axis, keep);
    case 5: return rp::cumsum(x, axis) / static_cast<double>(x.shape(axis));
    case 6: return rp::sort(x, axis);
    case 7: return rp::sum(x) / static_cast<double>(x.size());
    default: return rp::prod(rp::cos(x), axis, keep);
  }
}

// A matrix made of any array.
Array matrix(const Array& x) {
  if (x.ndim() >= 2) return x.ndim() == 2 ? x : x[0];
  return x.ndim() == 1 ? rp::expand_dims(x, 0) : rp::broadcast_to(x, {2, 2});
}
Array product(Random& random, const Array& a, const Array& b) {
  const Array x = matrix(a), raw = matrix(b);
  const std::int64_t k = x.shape(1);
  const Array y = raw.shape(0) == k ? raw : rp::broadcast_to(rp::mean(raw, 0), {k, raw.shape(1)});
  const double scale = 0.5 / static_cast<double>(k);
  switch (random.below(5)) {
    case 0: return small(rp::matmul(x, y) * scale);
    case 1:
      return small(rp::matmul(rp::stack({x, rp::sin(x)}), rp::stack({y, rp::cos(y)})) * scale);
    case 2: return rp::matmul(x, y[rp::slice(0, k)](rp::all, 0)) * scale;
    case 3: return small(rp::einsum("ij,jk->ki", x, y) * scale);
    default: return rp::vdot(x, fit(x, x.shape())) * (0.5 / static_cast<double>(x.size()));
  }
}

// --------------------------------------------------------------- functions with rules of their own
Array own_tangent(const Array& x) {
  auto f = [](Array v) { return rp::sin(v) * rp::tanh(v); };
  auto rule = [](std::tuple<Array> primals, std::tuple<Array> tangents) {
    const Array v = std::get<0>(primals), dv = std::get<0>(tangents);
    const Array s = rp::sin(v), t = rp::tanh(v), c = rp::cos(v);
    const Array slope = c * t + s * (1.0 - t * t);
    return std::pair{s * t, slope * dv};
  };
  return rp::custom_jvp(f, rule)(x);
}
Array own_cotangent(const Array& x) {
  auto f = [](Array v) { return rp::cos(v) * v; };
  auto forward = [](Array v) {
    const Array c = rp::cos(v), s = rp::sin(v);
    return std::pair{c * v, c - s * v};
  };
  auto backward = [](Array slope, Array ct) { return std::tuple<Array>(slope * ct); };
  return rp::custom_vjp(f, forward, backward)(x);
}

// ------------------------------------------------------------------------------------------ blocks
// A block takes a pool of values and returns it with new ones behind. Inner blocks draw from seeds
// of their own: how often a transform calls a function must not change what it does.
class Generator {
 public:
  explicit Generator(const Options& options) : options_(options) {}

  Arrays block(std::uint64_t seed, int depth, Arrays pool, bool with_names) const {
    Random random(seed);
    if (with_names) {
      for (const std::string& name : names) {
        const Array x = random.of(pool);
        pool.push_back(rp::checkpoint_name(random.chance(50) ? rp::sin(x) : rp::tanh(x), name));
      }
    }
    for (int i = 0; i < options_.operations; ++i) {
      Array made =
          random.chance(depth > 0 ? 35 : 0) ? nested(random, depth, pool) : plain(random, pool);
      pool.push_back(std::move(made));
    }
    return pool;
  }

  // The whole: at least one checkpoint on a computed value, then anything.
  Array loss(std::uint64_t seed, Arrays pool) const {
    Random random(seed);
    const std::size_t given = pool.size();
    pool.push_back(plain(random, pool));
    pool.push_back(checkpointed(random, options_.depth, pool));
    pool = block(random.next(), options_.depth, std::move(pool), false);
    Array sum = rp::mean(pool.back());
    for (std::size_t i = given; i + 1 < pool.size(); i += 2) sum = sum + rp::mean(pool[i]);
    return sum;
  }

 private:
  Array plain(Random& random, const Arrays& pool) const {
    const Array x = random.of(pool), y = random.of(pool);
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2: return unary(random, x);
      case 3:
      case 4: return binary(random, x, y);
      case 5:
      case 6: return reshaped(random, x);
      case 7: return reduced(random, x);
      case 8: return product(random, x, y);
      case 9: return own_tangent(x);
      case 10: return own_cotangent(x);
      default: return rp::checkpoint_name(rp::sin(x), random.of(names));
    }
  }

  Array nested(Random& random, int depth, const Arrays& pool) const {
    const std::int64_t choice = random.below(options_.control_flow ? 12 : 5);
    if (choice < 4) return checkpointed(random, depth, pool);
    if (choice < 5) return jitted(random, depth, pool);
    return choice < 9 ? controlled(random, depth, pool) : mapped(random, depth, pool);
  }

  Array controlled(Random& random, int depth, const Arrays& pool) const {
    switch (random.below(6)) {
      case 0:
      case 1: return looped(random, depth, pool);
      case 2: return counted(random, depth, pool);
      case 3: return repeated(random, depth, pool);
      default: return chosen(random, depth, pool);
    }
  }

  static Arrays some(Random& random, const Arrays& pool) {
    const Array x = random.of(pool), y = random.of(pool);
    return {x, y};
  }

  // The last value of a block on some of the pool; `outer` is closed over.
  Body body(Random& random, int depth, const Arrays& pool, bool with_names) const {
    const std::uint64_t seed = random.next();
    const Array outer = random.of(pool);
    const bool closes = random.chance(50);
    const Generator self = *this;
    return [self, seed, depth, outer, closes, with_names](Arrays args) {
      if (closes) args.push_back(outer);
      const Arrays all = self.block(seed, depth - 1, std::move(args), with_names);
      return Arrays{all[all.size() - 2], all.back()};
    };
  }

  Array checkpointed(Random& random, int depth, const Arrays& pool) const {
    const Arrays args = some(random, pool);
    const Body f = body(random, depth, pool, true);
    const Body g = in_checkpoint(random, f);
    const Arrays out = g(args);
    if (!random.chance(25)) return out[1];
    return g({out[0], out[1]})[1];  // once more, on other types
  }

  Body in_checkpoint(Random& random, const Body& f) const {
    rp::CheckpointOptions options{.policy = make_policy(policy(random, 1))};
    const std::int64_t prevent = random.below(4);
    if (prevent < 2)
      options.prevent_cse = prevent == 1;
    else
      options.prevent_cse = std::vector<bool>{prevent == 3};
    return options_.checkpoints ? Body(rp::checkpoint(f, options)) : f;
  }

  Array jitted(Random& random, int depth, const Arrays& pool) const {
    const Arrays args = some(random, pool);
    const Body f = rp::jit(body(random, depth, pool, false), {.name = "inner"});
    return f(args)[1];
  }

  Array looped(Random& random, int depth, const Arrays& pool) const {
    const Array init = random.of(pool), row = random.of(pool);
    const bool stacked = row.ndim() == 0 || random.chance(50);
    const Array xs = stacked ? rp::stack({row, rp::sin(row), rp::cos(row)}) : row;
    const Body plain_step = body(random, depth, pool, true);
    const Body kept_step = in_checkpoint(random, plain_step);
    const Body step = random.chance(60) ? kept_step : plain_step;
    const bool number_out = random.chance(20);
    auto loop = [step, number_out, dtype = options_.dtype](Array carry, Array x) {
      const Arrays out = step({carry, x});
      const Array next = rp::tanh(carry + fit(out[1], carry.shape()));
      return std::pair{next, number_out ? rp::full({}, 0.5, dtype) : out[0]};
    };
    const bool reverse = random.chance(30), want_carry = random.chance(50);
    const auto [carry, ys] = rp::scan(loop, init, xs, {.reverse = reverse});
    return want_carry ? carry : rp::mean(ys, 0);
  }

  // A fori_loop with C++ bounds.
  Array counted(Random& random, int depth, const Arrays& pool) const {
    const Array init = random.of(pool);
    const Body step = body(random, depth, pool, true);
    const std::int64_t steps = 1 + random.below(3);
    return rp::fori_loop(
        0, steps,
        [step, dtype = options_.dtype](Array i, Array carry) {
          const Arrays out = step({carry, i.astype(dtype) * 0.25});
          return rp::tanh(carry + fit(out[1], carry.shape()));
        },
        init);
  }

  // A while_loop or a fori_loop with traced bounds: how many steps depends on values. These have no
  // reverse derivative, so nothing that is differentiated goes in.
  Array repeated(Random& random, int depth, const Arrays& pool) const {
    Arrays stopped;
    for (const Array& x : pool) stopped.push_back(rp::stop_gradient(x));
    const Array init = random.of(stopped), limit = rp::sin(rp::mean(random.of(stopped)));
    const Body step = body(random, depth, stopped, true);
    const auto next = [step, limit](const Array& carry) {
      return rp::tanh(carry + fit(step({carry, limit})[1], carry.shape()));
    };
    if (random.chance(40)) {
      const Array upper = rp::floor(2.0 + 2.0 * limit).astype(rp::int32);
      return rp::fori_loop(
          Array(0), upper, [next](Array, Array carry) { return next(carry); }, init);
    }
    // a level that falls by a share of its own, and the value
    using State = std::tuple<Array, Array>;
    const auto more = [limit](State s) { return std::get<0>(s) > 0.4 + 0.2 * limit; };
    const auto fall = [next](State s) {
      const Array level = std::get<0>(s) * (0.5 + 0.2 * rp::cos(rp::mean(std::get<1>(s))));
      return State{level, next(std::get<1>(s))};
    };
    const Array start = 1.0 + rp::square(rp::mean(init));
    return std::get<1>(rp::while_loop(more, fall, State{start, init}));
  }

  // vmap of a block, or of control flow itself, over rows of one value and rows or the whole of
  // another.
  Array mapped(Random& random, int depth, const Arrays& pool) const {
    const Array x = random.of(pool), y = random.of(pool);
    const Array rows = x.ndim() > 0 ? x : rp::stack({x, rp::sin(x), rp::cos(x)});
    const bool both = y.ndim() > 0 && y.shape(0) == rows.shape(0) && random.chance(50);
    const bool flows = random.chance(60);
    const std::uint64_t seed = random.next();
    const Body block_body = body(random, depth, pool, true);
    const Generator self = *this;
    const auto f = [self, flows, seed, depth, block_body](Array row, Array other) {
      if (!flows) return block_body({row, other})[1];
      Random inner(seed);
      return self.controlled(inner, depth - 1, {row, other});
    };
    using Axis = rp::InAxes::Axis;
    const Array out = rp::vmap(f, {.in_axes = {Axis(0), both ? Axis(0) : std::nullopt}})(rows, y);
    return small(out.ndim() > 3 ? rp::mean(out, 0) : out);
  }

  Array chosen(Random& random, int depth, const Arrays& pool) const {
    const Arrays args = some(random, pool);
    std::vector<Body> branches;
    const std::int64_t count = 2 + random.below(2);
    for (std::int64_t b = 0; b < count; ++b) {
      const Body f = body(random, depth, {random.of(pool)}, true);
      const Body g = random.chance(50) ? in_checkpoint(random, f) : f;
      const bool number_out = random.chance(30);
      branches.push_back([g, number_out, dtype = options_.dtype](Arrays x) {
        const Array out = g(x)[1];
        const Array scale = number_out ? rp::full({}, 0.5, dtype) : rp::sin(rp::mean(out));
        return Arrays{rp::sin(x[0]) + fit(out, x[0].shape()), scale};
      });
    }
    const Array from = random.of(pool);
    const Arrays out = count == 2 ? rp::cond(rp::mean(from) > 0.1, branches[0], branches[1], args)
                                  : rp::switch_(rp::argmax(rp::ravel(from)), branches, args);
    return out[0] * out[1];
  }

  Options options_;
};

Array random_array(Random& random, const Shape& shape, rp::Dtype dtype) {
  std::int64_t size = 1;
  for (std::int64_t n : shape) size *= n;
  std::vector<double> values(static_cast<std::size_t>(size));
  for (double& v : values) v = random.real();
  return rp::array(values, shape).astype(dtype);
}

}  // namespace

PolicyRecipe random_policy(std::uint64_t seed) {
  Random random(seed);
  return policy(random, 2);
}

rp::Policy make_policy(const PolicyRecipe& r) {
  namespace P = rp::checkpoint_policies;
  switch (r.kind) {
    case PolicyKind::none: return {};
    case PolicyKind::everything: return P::everything_saveable;
    case PolicyKind::nothing: return P::nothing_saveable;
    case PolicyKind::dots: return P::dots_saveable;
    case PolicyKind::dots_no_batch: return P::dots_with_no_batch_dims_saveable;
    case PolicyKind::only_names: return P::save_only_these_names_list(r.names);
    case PolicyKind::any_names_but: return P::save_any_names_but_these_list(r.names);
    case PolicyKind::anything_except: return P::save_anything_except_these_names_list(r.names);
    case PolicyKind::offload_dots:
      return P::offload_dot_with_no_batch_dims("device", "pinned_host");
    case PolicyKind::save_and_offload:
      return P::save_and_offload_only_these_names({r.names, r.offloaded, "device", "pinned_host"});
    case PolicyKind::at_least: return P::bytes_at_least(r.bytes);
    case PolicyKind::at_most: return P::bytes_at_most(r.bytes);
    case PolicyKind::custom_sines:
      return {
          [](const rp::EquationInfo& e) { return e.primitive == "sin" || e.primitive == "cos"; },
          "sines"};
    case PolicyKind::custom_answers:
      return {[](const rp::EquationInfo& e) -> rp::Policy::Answer {
                if (e.primitive == "mul") return rp::Offloadable{};
                if (e.primitive == "tanh") return rp::Saveable{};
                return rp::Recompute{};
              },
              "answers"};
    case PolicyKind::either: return make_policy(r.parts[0]) | make_policy(r.parts[1]);
    case PolicyKind::both: return make_policy(r.parts[0]) & make_policy(r.parts[1]);
    case PolicyKind::neither: return !make_policy(r.parts[0]);
  }
  return {};
}

RandomProgram make(std::uint64_t seed, const Options& options) {
  Random random(seed);
  const std::int64_t m = 2 + random.below(3), n = 2 + random.below(3);
  RandomProgram program;
  for (const Shape& shape : {Shape{m, n}, Shape{n}, Shape{n, m}, Shape{2, m, n}}) {
    program.args.push_back(random_array(random, shape, options.dtype));
  }
  const std::uint64_t body = random.next();
  program.loss = [generator = Generator(options), body](Arrays x) {
    return generator.loss(body, std::move(x));
  };
  return program;
}

}  // namespace random_program
