// Steps that pass slices on: found where they may be, and never seen in a result.
#include "plan/find_relays.h"
#include "runtime/compile.h"
#include "same_bits.h"
#include "with_threads.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;

namespace {

Array normal(int seed, const rp::Shape& shape) {
  return rp::random::normal(rp::random::key(seed), shape);
}

Array causal(const Array& scores) {
  const std::int64_t t = scores.shape().back();
  return rp::where(rp::tril(rp::ones({t, t}, rp::bool_)), scores, -1e9f);
}
// Heads in rows, as a projection leaves them.
Array attention(Array q, Array k, Array v) {
  const Array scores = rp::einsum("bqhd,bkhd->bhqk", q, k) * 0.125f;
  return rp::einsum("bhqk,bkhd->bqhd", rp::nn::softmax(causal(scores), -1), v);
}

// Of two threads: a relay holds a slice for each thread, and with as many threads as slices it
// would take more memory than steps that follow each other.
template <class F, class... A>
std::size_t count_relays(const F& f, const A&... args) {
  const WithThreads two(2);
  const std::string text = rp::jit(f).lower(args...).compile().as_text();
  std::size_t n = 0;
  for (std::size_t at = text.find("relay of"); at != std::string::npos;
       at = text.find("relay of", at + 1))
    ++n;
  return n;
}

// As without relays, bit for bit, with several numbers of threads, and in no more memory than
// without them.
template <class F, class... A>
void check_unseen(const F& f, const A&... args) {
  const auto peak = [&] {
    return rp::jit(f).lower(args...).compile().memory_analysis().peak_bytes;
  };
  const auto results = [&] { return rp::tree_leaves(rp::jit(f)(args...)); };
  const rp::Arrays expected = [&] {
    const WithoutPass without("relay");
    return results();
  }();
  for (const int threads : {1, 2, 5, 64}) {
    INFO("with ", threads, " threads");
    const WithThreads now(threads);
    const std::size_t with_relays = peak();
    const rp::Arrays got = results();
    const WithoutPass without("relay");
    CHECK(with_relays <= peak());
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], expected[i]);
  }
}

}  // namespace

TEST_CASE("attention runs matrix by matrix, forward and backward") {
  const Array q = normal(1, {2, 64, 4, 40}), k = normal(2, {2, 64, 4, 40}),
              v = normal(3, {2, 64, 4, 40});
  CHECK(count_relays(attention, q, k, v) == 1);
  check_unseen(attention, q, k, v);
  const auto loss = [](Array a, Array b, Array c) { return rp::sum(rp::sin(attention(a, b, c))); };
  const auto gradient = rp::value_and_grad<0, 1, 2>(loss);
  CHECK(count_relays(gradient, q, k, v) == 2);
  check_unseen(gradient, q, k, v);
  check_unseen(rp::value_and_grad<0, 1, 2>(rp::checkpoint(loss)), q, k, v);
}

TEST_CASE("what is passed on takes a thread's share of memory") {
  const Array x = normal(1, {4, 128, 8, 32});  // scores: 2 MiB
  const auto peak = [&] {
    return rp::jit(attention).lower(x, x, x).compile().memory_analysis().peak_bytes;
  };
  const WithThreads two(2);
  const std::size_t with = peak();
  const WithoutPass without("relay");
  CHECK(peak() >= with + (3u << 19));
}

TEST_CASE("odd sizes, one batch dimension and f64") {
  for (const rp::Shape& shape : {rp::Shape{5, 53, 3, 31}, {1, 77, 9, 39}, {9, 69, 1, 33}}) {
    INFO(rp::to_string(rp::Type{rp::float32, shape}));
    const Array q = normal(1, shape), k = normal(2, shape), v = normal(3, shape);
    CHECK(count_relays(attention, q, k, v) >= 1);
    check_unseen(rp::value_and_grad<0, 1, 2>(
                     [](Array a, Array b, Array c) { return rp::sum(attention(a, b, c) * a); }),
                 q, k, v);
  }
  const auto products = [](Array a, Array b) { return rp::matmul(rp::exp(rp::matmul(a, b)), b); };
  const Array a = rp::random::normal(rp::random::key(4), {6, 60, 60}, rp::float64), b = a * 0.01;
  CHECK(count_relays(products, a, b) == 1);
  check_unseen(products, a, b);
}

TEST_CASE("values with other readers keep their place, positions count from the start") {
  const Array x = normal(1, {8, 64, 32}), y = normal(2, {8, 32, 64});
  const auto shared = [](Array a, Array b) {
    const Array p = rp::matmul(a, b);
    return std::pair{rp::matmul(rp::tanh(p), a), p};
  };
  CHECK(count_relays(shared, x, y) == 1);
  check_unseen(shared, x, y);
  const auto with_positions = [](Array a, Array b) {
    const Array p = rp::matmul(a, b);
    return rp::matmul(p + rp::arange(8 * 64 * 64).reshape({8, 64, 64}).astype(rp::float32), a);
  };
  CHECK(count_relays(with_positions, x, y) == 1);
  check_unseen(with_positions, x, y);
}

TEST_CASE("steps that look beyond their slice do not join") {
  const Array x = normal(1, {8, 64, 32}), y = normal(2, {8, 32, 64});
  // Over all matrices, in another order of matrices, and the same matrix for all.
  const auto over_all = [](Array a, Array b) {
    return rp::matmul(rp::nn::softmax(rp::matmul(a, b), 0), a);
  };
  const auto reversed = [](Array a, Array b) {
    return rp::matmul(rp::flip(rp::matmul(a, b), 0), a);
  };
  const auto one = [](Array a, Array b) {
    return rp::matmul(rp::broadcast_to(rp::matmul(a, b)[0], {8, 64, 64}), a);
  };
  CHECK(count_relays(over_all, x, y) == 0);
  CHECK(count_relays(reversed, x, y) == 0);
  CHECK(count_relays(one, x, y) == 0);
  check_unseen(over_all, x, y);
  check_unseen(reversed, x, y);
  check_unseen(one, x, y);
}

TEST_CASE("empty parts of a product do not join") {
  const Array x = normal(1, {8, 64, 32}), y = normal(2, {8, 32, 64});
  const auto empty = [](Array a, Array b) {
    const Array p = rp::matmul(a, b);
    const Array none = rp::lax::slice(p, {0, 0, 0}, {8, 0, 64});
    return std::tuple{rp::exp(none), rp::matmul(rp::tanh(p), a), rp::sum(none * 2.0f, 2)};
  };
  CHECK(count_relays(empty, x, y) == 1);
  check_unseen(empty, x, y);
}

TEST_CASE("bodies of loops have relays of their own") {
  const Array x = normal(1, {3, 2, 64, 4, 40});
  const auto loop = [](Array rows) {
    auto body = [](Array carry, Array row) {
      return std::pair{attention(carry, row, carry), rp::sum(carry)};
    };
    return rp::sum(rp::scan(body, rows[0], rows).first);
  };
  CHECK(count_relays(loop, x) == 1);
  CHECK(count_relays(rp::value_and_grad(loop), x) >= 2);
  check_unseen(rp::value_and_grad(loop), x);
}

TEST_CASE("few or small matrices are left as they are") {
  CHECK(count_relays(attention, normal(1, {1, 64, 2, 32}), normal(2, {1, 64, 2, 32}),
                     normal(3, {1, 64, 2, 32})) == 0);
  CHECK(count_relays(attention, normal(1, {8, 4, 8, 4}), normal(2, {8, 4, 8, 4}),
                     normal(3, {8, 4, 8, 4})) == 0);
}

TEST_CASE("a run that is watched shows every value") {
  const Array x = normal(1, {2, 64, 4, 40});
  const rp::ProgramPtr program = rp::make_jaxpr(attention)(x, x, x).program();
  const WithThreads two(2);
  const auto relayed = rp::compile(*program), watched = rp::compile(*program, {.relays = false});
  CHECK(relayed->code().instructions.size() < watched->code().instructions.size());
  CHECK(rp::check_recompute(rp::checkpoint([](Array a) { return rp::sum(attention(a, a, a)); }), x)
            .ok);
}
