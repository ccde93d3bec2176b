// Programs with random numbers, letter for letter as JAX prints them; read back from text they draw
// the same numbers.
#include "golden/sections.h"
#include "ops/random.h"

namespace {

using namespace golden;
namespace r = rp::random;

const Array key0 = r::key(0), raw0 = r::PRNGKey(0), keys4 = r::split(key0, 4);
const Array three = rp::ones({3}), rows = rp::ones({2, 3});
const std::optional<std::int64_t> unmapped = std::nullopt;

template <class F, class... A>
void same(const std::string& heading, const F& f, const A&... args) {
  Section s("g24_random", heading);
  const rp::Jaxpr ours = rp::make_jaxpr(f)(args...);
  s.program(ours.str());
  s.end();
  CHECK(rp::parse_jaxpr(ours.str()).str() == ours.str());
}

}  // namespace

TEST_CASE("keys are made, split and opened by the equations of JAX") {
  same("PRNGKey", [] { return r::PRNGKey(0); });
  same("key", [] { return r::key(0); });
  same(
      "key_data", [](Array k) { return r::key_data(k); }, key0);
  same(
      "key_data raw", [](Array k) { return r::key_data(k); }, raw0);
  same(
      "wrap", [](Array k) { return r::wrap_key_data(k); }, raw0);
  same(
      "split", [](Array k) { return r::split(k); }, key0);
  same(
      "split raw", [](Array k) { return r::split(k); }, raw0);
  same(
      "split raw shape",
      [](Array k) {
        return r::split(k, {2, 3});
      },
      raw0);
  same(
      "fold", [](Array k) { return r::fold_in(k, 3); }, key0);
  same(
      "fold raw", [](Array k, Array i) { return r::fold_in(k, i); }, raw0, rp::array({5})[0]);
  same(
      "bits", [](Array k) { return r::bits(k, {3}); }, key0);
  same(
      "bits raw", [](Array k) { return r::bits(k, {3}, rp::uint8); }, raw0);
  same(
      "threefry p",
      [](Array k, Array n) {
        Array first = k[0];
        Array second = k[1];
        return rp::lax::threefry2x32(first, second, n, n);
      },
      raw0, rp::arange(5, rp::uint32));
}

TEST_CASE("keys move as other arrays do") {
  same(
      "stack keys",
      [](Array k) {
        Array a = k[0];
        Array b = k[1];
        return rp::stack({a, b});
      },
      r::split(key0));
  same(
      "where keys",
      [](Array k) {
        Array first = rp::arange(2);
        first = first < 1;
        return rp::where(first, k, k);
      },
      r::split(key0));
  same(
      "scan",
      [](Array k) {
        auto body = [](Array c, rp::None) {
          Array next = r::split(c, 2);
          next = next[0];
          Array u = r::uniform(c);
          return Pair{next, u};
        };
        return rp::scan(body, k, rp::none, {.length = 3});
      },
      key0);
}

TEST_CASE("continuous distributions are the equations of JAX") {
  same(
      "uniform", [](Array k) { return r::uniform(k, {3}); }, key0);
  same(
      "uniform()", [](Array k) { return r::uniform(k); }, raw0);
  same(
      "uniform lo hi", [](Array k) { return r::uniform(k, {3}, rp::float32, -.3, .7); }, key0);
  same(
      "uniform lo hi arr",
      [](Array k, Array x) {
        return r::uniform(k, {2, 3}, rp::float32, x, 1);
      },
      key0, three);
  same(
      "uniform bf16", [](Array k) { return r::uniform(k, {3}, rp::bfloat16); }, key0);
  same(
      "uniform f16", [](Array k) { return r::uniform(k, {3}, rp::float16); }, key0);
  same(
      "normal", [](Array k) { return r::normal(k, {3}); }, raw0);
  same(
      "normal bf16", [](Array k) { return r::normal(k, {3}, rp::bfloat16); }, key0);
  same(
      "tn", [](Array k) { return r::truncated_normal(k, -2, 2, {{3}}); }, key0);
  same(
      "tn arr",
      [](Array k, Array x) {
        Array low = -x;
        return r::truncated_normal(k, low, 2.);
      },
      key0, three);
  same(
      "tn bf16", [](Array k) { return r::truncated_normal(k, -2, 2, {{3}}, rp::bfloat16); }, key0);
  same(
      "gumbel", [](Array k) { return r::gumbel(k, {3}); }, raw0);
  same(
      "gumbel ()", [](Array k) { return r::gumbel(k); }, key0);
  same(
      "expo", [](Array k) { return r::exponential(k, {3}); }, raw0);
}

TEST_CASE("random integers and decisions are the equations of JAX") {
  same(
      "randint", [](Array k) { return r::randint(k, {3}, 0, 10); }, raw0);
  same(
      "randint u8", [](Array k) { return r::randint(k, {3}, 0, 10, rp::uint8); }, key0);
  same(
      "randint u32", [](Array k) { return r::randint(k, {3}, 0, 10, rp::uint32); }, key0);
  same(
      "randint traced", [](Array k, Array n) { return r::randint(k, {3}, 0, n); }, key0,
      rp::array({7})[0]);
  same(
      "randint arr",
      [](Array k) {
        Array n = rp::arange(3);
        return r::randint(k, {2, 3}, 0, n);
      },
      key0);
  same(
      "randint f2", [](Array k) { return r::randint(k, {2}, 0, 2.5); }, key0);
  same(
      "bern", [](Array k) { return r::bernoulli(k, .3, {{3}}); }, raw0);
  same(
      "bern def", [](Array k) { return r::bernoulli(k); }, raw0);
  same(
      "bern arr",
      [](Array k, Array x) {
        return r::bernoulli(k, x, {{2, 3}});
      },
      key0, three);
  same(
      "cat", [](Array k, Array x) { return r::categorical(k, x); }, raw0, rows);
  same(
      "cat ax",
      [](Array k, Array x) {
        return r::categorical(k, x, 0, {{4, 3}});
      },
      key0, rows);
}

TEST_CASE("permutations and choices are the equations of JAX") {
  same(
      "perm n", [](Array k) { return r::permutation(k, 5); }, raw0);
  same(
      "perm n2", [](Array k) { return r::permutation(k, 2000); }, key0);
  same(
      "perm x", [](Array k, Array x) { return r::permutation(k, x); }, key0, three);
  same(
      "perm x2", [](Array k, Array x) { return r::permutation(k, x, 1); }, key0, rows);
  same(
      "perm x2 ind", [](Array k, Array x) { return r::permutation(k, x, 1, true); }, key0, rows);
  same(
      "perm 0", [](Array k) { return r::permutation(k, 0); }, key0);
  same(
      "choice", [](Array k) { return r::choice(k, 5, {3}); }, raw0);
  same(
      "choice()", [](Array k) { return r::choice(k, 5); }, raw0);
  same(
      "choice x",
      [](Array k, Array x) {
        return r::choice(k, x, {2, 2});
      },
      key0, three);
  same(
      "choice x ax", [](Array k, Array x) { return r::choice(k, x, {2}, {.axis = 1}); }, key0,
      rows);
  same(
      "choice norep", [](Array k, Array x) { return r::choice(k, x, {2}, {.replace = false}); },
      key0, three);
  same(
      "choice norep n", [](Array k) { return r::choice(k, 5, {2}, {.replace = false}); }, key0);
  same(
      "choice p norep",
      [](Array k, Array x, Array p) { return r::choice(k, x, {2}, {.replace = false, .p = p}); },
      key0, three, three);
}

TEST_CASE("mapped over keys or numbers, programs are those of JAX") {
  auto bits = [](Array k) { return r::bits(k, {3}); };
  auto fold = [](Array k, Array i) { return r::fold_in(k, i); };
  same("vmap bits", rp::vmap(bits), keys4);
  same("vmap bits raw ax1", rp::vmap(bits, {.in_axes = {1}}), rp::transpose(r::split(raw0, 4)));
  same("vmap split", rp::vmap([](Array k) { return r::split(k, 3); }), keys4);
  same("vmap fold", rp::vmap(fold, {.in_axes = {unmapped, 0}}), key0, rp::arange(3));
  same("vmap fold3", rp::vmap(fold), keys4, rp::arange(4));
  same(
      "vmap fold nested",
      [](Array keys, Array numbers) {
        auto all = [numbers](Array k) {
          return rp::vmap([k](Array i) { return r::fold_in(k, i); })(numbers);
        };
        return rp::vmap(all)(keys);
      },
      r::split(key0, 2), rp::ones({4}, rp::uint32));
  same("vmap seed", rp::vmap([](Array s) { return r::key(s); }), rp::arange(4));
  same("vmap uniform", rp::vmap([](Array k) { return r::uniform(k, {3}); }), keys4);
  same("vmap uniform minval",
       rp::vmap([](Array k, Array m) { return r::uniform(k, {3}, rp::float32, m); },
                {.in_axes = {unmapped, 0}}),
       key0, three);
  same("vmap unwrap", rp::vmap([](Array k) { return r::key_data(k); }, {.in_axes = {1}}),
       r::split(key0, {2, 4}));
  same(
      "jvp normal",
      [](Array k, Array x) {
        auto f = [k](Array v) {
          Array n = r::normal(k, v.shape());
          return v * n;
        };
        return rp::jvp(f, std::tuple{x}, std::tuple{x});
      },
      key0, three);
}

TEST_CASE("g08: random numbers inside checkpoint, their residuals and their second drawing") {
  auto noisy = [](Array k, Array x) {
    Array n = r::normal(k, x.shape());
    n = x * n;
    n = rp::sin(n);
    return rp::sum(n);
  };
  auto f = rp::checkpoint(noisy);
  auto named = [](const Array& k) { return rp::arg("key", k); };
  const auto x = rp::arg("x", three);
  Section s("g08_policy_args_effects_random", "random");
  s.traced(f, key0, three);
  s.residuals(f, named(key0), x);
  s.residuals(f, named(raw0), x);
  s.traced([&](Array k, Array v) { return rp::grad<1>(f)(k, v); }, key0, three);
  s.skip("no remat");
  s.residuals(noisy, named(key0), x);
  s.residuals(noisy, named(raw0), x);
  s.skip("everything");
  s.residuals(rp::checkpoint(noisy, {.policy = P::everything_saveable}), named(key0), x);
  s.end();
}
