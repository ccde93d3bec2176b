// Rolls, pads and concatenations that are read in pieces: the elements are those of the plain
// evaluator, nothing is copied, and no result takes the place of an operand whose neighbours are
// still read.
#include "plan/pieces.h"

#include "derivatives.h"
#include "program/trace.h"
#include "runtime/compile.h"
#include "same_bits.h"
#include <reprise/lax.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <random>

namespace rp = reprise;
namespace plan = reprise::plan;
using rp::Array;

namespace {

template <class F, class... A>
std::shared_ptr<const rp::Executable> compiled(F f, const A&... args) {
  return rp::compile(*rp::make_jaxpr(f)(args...).program());
}
std::size_t steps_of(const rp::Executable& e) { return e.code().schedule->steps.size(); }

Array laplace(const Array& u) {
  Array x = rp::roll(u, 1, 0) + rp::roll(u, -1, 0);
  Array y = rp::roll(u, 1, 1) + rp::roll(u, -1, 1);
  return x + y - 4.0 * u;
}

class RandomStencil {
 public:
  explicit RandomStencil(std::uint64_t seed) : random_(seed) {
    const std::size_t rank = 1 + pick(3);
    for (std::size_t d = 0; d < rank; ++d) shape_.push_back(std::int64_t{1} << pick(3));
    shape_[pick(rank)] = 1 + static_cast<std::int64_t>(pick(70));
    length_ = 2 + pick(6);
    for (std::size_t i = 0; i < 8 * length_; ++i) choices_.push_back(random_());
  }
  const rp::Shape& shape() const { return shape_; }

  Array operator()(const Array& x) const {
    std::size_t next = 0;
    const auto choose = [&](std::size_t n) {
      return static_cast<std::int64_t>(choices_[next++ % choices_.size()] % n);
    };
    std::vector<Array> all{x};
    for (std::size_t i = 0; i < length_; ++i) {
      Array a = all[static_cast<std::size_t>(choose(all.size()))];
      const std::int64_t axis = choose(shape_.size());
      const std::int64_t size = shape_[static_cast<std::size_t>(axis)];
      const std::int64_t by = choose(static_cast<std::size_t>(size) + 1);
      Array moved = piece(a, choose(5), axis, by, size);
      Array b = all[static_cast<std::size_t>(choose(all.size()))];
      all.push_back(moved * 0.5f + b);
    }
    return all.back();
  }

 private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  static Array part(const Array& a, std::int64_t axis, std::int64_t begin, std::int64_t end) {
    rp::Ints from(a.shape().size(), 0), to = a.shape();
    from[static_cast<std::size_t>(axis)] = begin;
    to[static_cast<std::size_t>(axis)] = end;
    return rp::lax::slice(a, from, to);
  }
  static Array padded(const Array& a, std::int64_t axis, std::int64_t low, std::int64_t high) {
    std::vector<rp::lax::PadDimension> config(a.shape().size());
    config[static_cast<std::size_t>(axis)] = {low, high, 0};
    return rp::lax::pad(a, Array(1.5f), config);
  }
  static Array piece(const Array& a, std::int64_t kind, std::int64_t axis, std::int64_t by,
                     std::int64_t size) {
    if (kind == 0) return rp::roll(a, by, axis);
    if (kind == 1) return padded(part(a, axis, by, size), axis, 0, by);
    if (kind == 2) return padded(part(a, axis, 0, size - by), axis, by, 0);
    if (kind == 3) return rp::roll(rp::roll(a, by, axis), 1, 0);
    const Array flipped = rp::flip(part(a, axis, by, size), axis);
    return rp::lax::concatenate({flipped, part(a, axis, 0, by)}, axis);
  }

  std::mt19937_64 random_;
  rp::Shape shape_;
  std::size_t length_ = 0;
  std::vector<std::uint64_t> choices_;
};

}  // namespace

TEST_CASE("a stencil of rolls is one kernel without a copy") {
  const Array u = rp::random::uniform(rp::random::key(1), {40, 72});
  const auto step = [](Array x) { return x + 0.1 * laplace(x); };
  const auto e = compiled(step, u);
  CHECK(steps_of(*e) == 1);
  CHECK(e->code().memory.arena_bytes == 0);
  check_same_bits(step, u);
}

TEST_CASE("the gradient of a stencil reads the pads of its rolls in place") {
  const Array u = rp::random::uniform(rp::random::key(1), {40, 72});
  const auto loss = [](Array x) { return rp::sum(rp::square(laplace(x))); };
  CHECK(steps_of(*compiled(rp::grad(loss), u)) <= 3);
  check_same_bits(rp::grad(loss), u);
}

TEST_CASE("random rolls, pads and concatenations have the elements of the evaluator") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomStencil f(seed);
    INFO("seed ", seed, ", shape ", rp::to_string(f.shape()));
    const Array x = rp::random::uniform(rp::random::key(static_cast<int>(seed)), f.shape());
    check_same_bits([&](Array a) { return f(a); }, x);
    const Array y = rp::jit([&](Array a) { return rp::sum(f(a), 0); })(x);
    check::check_close(y, rp::sum(f(x), 0));
    const auto loss = [&](Array a) { return rp::sum(rp::square(f(a))); };
    check::check_close(rp::jit(rp::grad(loss))(x), rp::grad(loss)(x));
  }
}

TEST_CASE("pieces of every dtype, of numbers and of positions") {
  const Array x = rp::arange(45).reshape({5, 9});
  for (const rp::Dtype d : {rp::float32, rp::float64, rp::bfloat16, rp::float16, rp::int8,
                            rp::int32, rp::int64, rp::uint8}) {
    const Array a = x.astype(d);
    check_same_bits([](Array v) { return rp::roll(v, 2, 1) + rp::roll(v, -1, 0); }, a);
    check_same_bits(
        [](Array v) {
          Array numbers = rp::zeros_like(v);
          Array joined = rp::concatenate({v, numbers, rp::flip(v, 1)}, 1);
          return joined * joined;
        },
        a);
  }
  check_same_bits(
      [](Array v) {
        Array row = rp::roll(rp::arange(9), 3);
        return v + rp::broadcast_to(row, {5, 9});
      },
      x);
  check_same_bits([](Array v) { return rp::logical_not(rp::roll(v > 20, 1, 1)); }, x);
}

TEST_CASE("a result does not take the place of what is read at other elements") {
  const Array u = rp::random::uniform(rp::random::key(2), {300});
  const auto f = [](Array x) {
    Array y = x * x;
    Array z = y + rp::roll(y, 1);
    Array w = z + rp::roll(z, -1);
    return w * 2.0;
  };
  check_same_bits(f, u);
  const auto many = [=](Array x) {
    return rp::fori_loop(
        0, 5, [=](Array, Array v) { return f(v); }, x);
  };
  check_same_bits(many, u);
  Array given = rp::random::uniform(rp::random::key(2), {300});
  const Array wanted = rp::jit(f)(u);
  CHECK(rp::all(rp::equal(rp::jit(f, {.donate_argnums = {0}})(std::move(given)), wanted))
            .item<bool>());
}

TEST_CASE("what would keep more memory than it saves is put together") {
  // The rest of a large value would wait for the reader of a small part of it.
  const Array x = rp::random::uniform(rp::random::key(3), {4, 4096});
  const auto f = [](Array a) {
    Array b = a * a;
    Array c = rp::lax::slice(b, {0, 0}, {1, 4096});
    return rp::lax::concatenate({c, c}, 0) * 2.0f;
  };
  check_same_bits(f, x);
}
