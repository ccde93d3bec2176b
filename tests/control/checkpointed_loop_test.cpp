// scan and fori_loop with .checkpoints: gradients are those of plain scan with a checkpointed body,
// bit for bit, with any number of checkpoints, evaluated and compiled; every other transform of
// them.
#include "derivatives.h"
#include "error_text.h"
#include "reprise/loops.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace {

using namespace check;
using State = std::tuple<Array, Array, Array>;  // values, a count, a key
using Grads = std::tuple<Array, Array, Array>;

bool same_bits(const Array& a, const Array& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  return a.type() == b.type() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}
bool same_bits(const Grads& a, const Grads& b) {
  return same_bits(std::get<0>(a), std::get<0>(b)) && same_bits(std::get<1>(a), std::get<1>(b)) &&
         same_bits(std::get<2>(a), std::get<2>(b));
}

constexpr int kinds = 6;

// One step of a loop; w is closed over.
std::pair<State, Array> step_of(int kind, const Array& w, const State& s, const Array& x) {
  auto [h, i, key] = s;
  Array next = i + 1;
  switch (kind) {
    case 0: {
      Array a = w * h;
      Array b = rp::tanh(a + x);
      return {State{b, next, key}, h * x};
    }
    case 1: {
      Array a = rp::sin(h);
      Array b = rp::exp(-w * w);
      Array c = a * b + rp::cos(x);
      return {State{c, next, key}, c * c};
    }
    case 2: {  // reads the count
      Array f = i.astype(rp::float32);
      Array a = h + 0.1 * rp::sin(w * h) * f;
      return {State{a, next, key}, a + f};
    }
    case 3: {  // draws from the key
      Array keys = rp::random::split(key);
      Array noise = rp::random::normal(keys[1], h.shape());
      Array a = 0.9 * h + w * noise * rp::sin(x);
      return {State{a, next, keys[0]}, h};
    }
    case 4: {  // a policy of its own inside
      auto inner = rp::checkpoint(
          [](Array v, Array u) { return rp::sin(rp::checkpoint_name(rp::sin(v * u), "kept")); },
          {.policy = rp::checkpoint_policies::save_only_these_names("kept")});
      Array a = inner(h, w);
      return {State{a + x, next, key}, rp::cos(a)};
    }
    default: {  // one value used twice, one not at all
      Array m = rp::outer(w, h);
      Array a = rp::tanh(rp::matmul(m, h) + w * x);
      return {State{a, next, key}, rp::sum(a) * x};
    }
  }
}

struct Loop {
  int kind;
  std::int64_t n;
  bool reverse;
};

// `wrap` makes the body that scan gets of the step.
template <class Wrap>
auto loss_of(const Loop& l, const rp::ScanOptions& options, const Wrap& wrap) {
  return [=](Array w, Array h, Array xs) {
    const auto body = wrap([=](State s, Array x) { return step_of(l.kind, w, s, x); });
    auto [last, ys] = rp::scan(body, State{h, Array(0), rp::random::key(3)}, xs, options);
    Array a = rp::sum(std::get<0>(last) * std::get<0>(last));
    Array b = rp::sum(rp::sin(ys));
    return a + b;
  };
}
auto plain_loss(const Loop& l) {
  return loss_of(l, {.reverse = l.reverse}, [](const auto& body) { return rp::checkpoint(body); });
}
auto budget_loss(const Loop& l, std::int64_t c) {
  return loss_of(l, {.reverse = l.reverse, .checkpoints = c},
                 [](const auto& body) { return body; });
}

Array uniform(std::uint64_t seed, const rp::Shape& shape) {
  return rp::random::uniform(rp::random::key(static_cast<int>(seed)), shape);
}

struct Arguments {
  Array w, h, xs;
};
Arguments arguments(std::uint64_t seed, std::int64_t n) {
  return {uniform(seed, {3}), uniform(seed + 1, {3}), uniform(seed + 2, {n, 3})};
}

// From one checkpoint to one for each step, six at most.
std::int64_t any_budget(std::mt19937_64& random, std::int64_t n) {
  const auto most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(n, 1, 6));
  return static_cast<std::int64_t>(random() % most + 1);
}

// A loop whose values are easy to follow.
Array powers(Array w, Array h, rp::LoopOptions options) {
  return rp::sum(rp::fori_loop(
      0, 7, [=](Array, Array v) { return rp::sin(v * w); }, h, options));
}

}  // namespace

TEST_CASE("300 random loops have the gradients of plain scan, bit for bit") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const Loop l{static_cast<int>(random() % kinds), static_cast<std::int64_t>(random() % 12),
                 random() % 2 == 0};
    const std::int64_t c = any_budget(random, l.n);
    const Arguments a = arguments(random() % 1000, l.n);
    const Grads plain = rp::grad<0, 1, 2>(plain_loss(l))(a.w, a.h, a.xs);
    const Grads budget = rp::grad<0, 1, 2>(budget_loss(l, c))(a.w, a.h, a.xs);
    INFO("kind " << l.kind << ", " << l.n << " steps, " << c << " checkpoints");
    REQUIRE(same_bits(plain, budget));
  }
}

TEST_CASE(
    "compiled loops have the gradients of plain scan, bit for bit, with any number of "
    "checkpoints") {
  for (int kind = 0; kind < kinds; ++kind) {
    const Loop l{kind, 9, kind % 2 == 0};
    const Arguments a = arguments(static_cast<std::uint64_t>(kind), l.n);
    const Grads plain = rp::jit(rp::grad<0, 1, 2>(plain_loss(l)))(a.w, a.h, a.xs);
    for (const std::int64_t c : {1, 2, 4, 9}) {
      const Grads budget = rp::jit(rp::grad<0, 1, 2>(budget_loss(l, c)))(a.w, a.h, a.xs);
      INFO("kind " << kind << ", " << c << " checkpoints");
      CHECK(same_bits(plain, budget));
    }
  }
}

TEST_CASE("random loops compiled have the gradients of plain scan, bit for bit") {
  std::mt19937_64 random(23);
  for (int round = 0; round < 40; ++round) {
    const Loop l{static_cast<int>(random() % kinds), static_cast<std::int64_t>(random() % 12),
                 random() % 2 == 0};
    const std::int64_t c = any_budget(random, l.n);
    const Arguments a = arguments(random() % 1000, l.n);
    const Grads plain = rp::jit(rp::grad<0, 1, 2>(plain_loss(l)))(a.w, a.h, a.xs);
    const Grads budget = rp::jit(rp::grad<0, 1, 2>(budget_loss(l, c)))(a.w, a.h, a.xs);
    INFO("kind " << l.kind << ", " << l.n << " steps, " << c << " checkpoints");
    REQUIRE(same_bits(plain, budget));
  }
}

TEST_CASE("loops of no step and of one step") {
  for (const std::int64_t n : {0, 1, 2}) {
    const Loop l{0, n, false};
    const Arguments a = arguments(5, n);
    const std::int64_t c = std::max<std::int64_t>(n, 1);
    const Grads plain = rp::grad<0, 1, 2>(plain_loss(l))(a.w, a.h, a.xs);
    CHECK(same_bits(plain, rp::grad<0, 1, 2>(budget_loss(l, c))(a.w, a.h, a.xs)));
    const Grads compiled = rp::jit(rp::grad<0, 1, 2>(budget_loss(l, c)))(a.w, a.h, a.xs);
    const Grads plain_compiled = rp::jit(rp::grad<0, 1, 2>(plain_loss(l)))(a.w, a.h, a.xs);
    CHECK(same_bits(plain_compiled, compiled));
  }
}

TEST_CASE("without a derivative the loop is a plain one, and prints its budget") {
  auto f = [](Array x) {
    return rp::scan(
               [](Array c, Array v) {
                 return std::pair{c * v, rp::none};
               },
               x, rp::ones({4}), {.checkpoints = 2})
        .first;
  };
  CHECK_MENTIONS(text(f, Array(1.0)), "scan[\n      checkpoints=2\n");
  CHECK(numbers(rp::jit(f)(3.0)) == numbers(f(3.0)));
}

TEST_CASE("programs of the forward and the backward pass") {
  auto f = [](Array x) {
    return rp::scan(
               [](Array c, rp::None) {
                 return std::pair{rp::sin(c), rp::none};
               },
               x, rp::none, {.length = 8, .checkpoints = 3})
        .first;
  };
  const rp::FwdBwd both = rp::fwd_bwd(f, Array(1.0));
  CHECK(both.forward.str() == R"({ lambda ; a:f32[]. let
    b:f32[] c:f32[2] d:f32[] = checkpointed_scan[
      checkpoints=3
      jaxpr={ lambda ; e:f32[]. let f:f32[] = sin e in (f,) }
      length=8
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a
  in (b, a, c, d) })");
  CHECK(both.backward.str() == R"({ lambda ; a:f32[2] b:f32[] c:f32[]. let
    d:f32[] _:f32[2] _:f32[] = checkpointed_reverse[
      advance_jaxpr={ lambda ; e:f32[]. let f:f32[] = sin e in (f,) }
      checkpoints=3
      length=8
      num_back=1
      num_carry=1
      num_consts=0
      reverse=False
      step_jaxpr={ lambda ; g:f32[] h:f32[]. let
          i:f32[] = cos g
          j:f32[] = mul h i
        in (j,) }
    ] a b 1.0:f32[] c
  in (d,) })");
}

TEST_CASE("forward derivatives: of the loop, and of its gradient") {
  const Array w = uniform(1, {3}), h = uniform(2, {3}), dw = uniform(3, {3});
  auto plain = [=](Array v) { return powers(v, h, {}); };
  auto budget = [=](Array v) { return powers(v, h, {.checkpoints = 2}); };
  const auto [y, dy] = rp::jvp(budget, std::tuple{w}, std::tuple{dw});
  const auto [z, dz] = rp::jvp(plain, std::tuple{w}, std::tuple{dw});
  CHECK(same_bits(y, z));
  CHECK(same_bits(dy, dz));
  const auto [g, dg] = rp::jvp(rp::grad(budget), std::tuple{w}, std::tuple{dw});
  const auto [k, dk] = rp::jvp(rp::grad(plain), std::tuple{w}, std::tuple{dw});
  check_close(g, k);
  check_close(dg, dk);
  check_close(rp::jit(rp::jacfwd(rp::grad(budget)))(w), rp::hessian(plain)(w));
}

TEST_CASE("a reversal is not reversed") {
  auto f = [](Array v) { return powers(v, rp::ones({3}), {.checkpoints = 2}); };
  auto second = [=](Array v) { return rp::sum(rp::grad(f)(v)); };
  CHECK_MENTIONS(
      message<rp::RuleError>([&] { return rp::grad(second)(rp::ones({3})); }),
      "the reversal of a loop with .checkpoints cannot be reversed once more within its budget");
}

TEST_CASE("mapped loops: the gradient of a mapped loop and the mapped gradient") {
  const Array ws = uniform(4, {5, 3}), h = uniform(6, {3});
  auto plain = [=](Array v) { return powers(v, h, {}); };
  auto budget = [=](Array v) { return powers(v, h, {.checkpoints = 3}); };
  const Array wanted = rp::vmap(rp::grad(plain))(ws);
  check_close(rp::vmap(rp::grad(budget))(ws), wanted);
  check_close(rp::jit(rp::vmap(rp::grad(budget)))(ws), wanted);
  check_close(rp::grad([=](Array vs) { return rp::sum(rp::vmap(budget)(vs)); })(ws), wanted);
  const Loop l{0, 6, false};
  const Arguments a = arguments(3, 6);
  const Array hs = uniform(9, {4, 3});
  auto of = [&](const auto& loss) {
    return rp::vmap([=](Array v) { return std::get<2>(rp::grad<0, 1, 2>(loss)(a.w, v, a.xs)); })(
        hs);
  };
  check_close(of(budget_loss(l, 2)), of(plain_loss(l)));
}

TEST_CASE("inside checkpoint, cond, jit and another loop with a budget of its own") {
  const Array w = uniform(1, {3}), h = uniform(2, {3});
  auto inner = [=](Array v, rp::LoopOptions o) {
    return rp::fori_loop(
        0, 5, [=](Array, Array u) { return rp::sin(u * w) + 0.1 * u; }, v, o);
  };
  auto outer = [=](Array v, rp::LoopOptions o) {
    return rp::sum(rp::fori_loop(
        0, 4, [=](Array, Array u) { return rp::cos(inner(u, o)); }, v, o));
  };
  auto plain = [=](Array v) { return outer(v, {}); };
  auto budget = [=](Array v) { return outer(v, {.checkpoints = 2}); };
  const Array wanted = rp::grad(plain)(h);
  check_close(rp::grad(budget)(h), wanted);
  check_close(rp::jit(rp::grad(budget))(h), wanted);
  check_close(rp::grad(rp::jit(budget))(h), wanted);
  check_close(rp::grad(rp::checkpoint(budget))(h), wanted);
  check_close(rp::jit(rp::grad(rp::checkpoint(budget)))(h), wanted);
  auto chosen = [=](Array v) {
    return rp::cond(
        rp::sum(v) > 0, budget, [](Array u) { return rp::sum(u); }, v);
  };
  check_close(rp::grad(chosen)(h), wanted);
  check_close(rp::jit(rp::grad(chosen))(h), wanted);
  const auto [y, linear] = rp::linearize(budget, h);
  const auto [z, dz] = rp::jvp(plain, std::tuple{h}, std::tuple{w});
  check_close(linear(w), dz);
}

TEST_CASE("bytes and automatic choose the number of checkpoints") {
  auto count = [](rp::ScanOptions o) {
    auto f = [=](Array x) {
      return rp::scan(
                 [](Array c, Array v) {
                   return std::pair{c * v, rp::none};
                 },
                 x, rp::ones({200}), o)
          .first;
    };
    const std::string program = text(f, rp::ones({4}));
    const std::size_t at = program.find("checkpoints=");
    return at == std::string::npos ? 0 : std::stoi(program.substr(at + 12));
  };
  CHECK(count({.checkpoint_bytes = 100}) == 6);
  CHECK(count({.checkpoints = rp::automatic}) == 19);  // C(21, 2) = 210 >= 200 > C(20, 2)
  CHECK(count({.checkpoint_bytes = 1 << 20}) == 200);
  CHECK(count({.checkpoints = 200}) == 200);
  CHECK(count({}) == 0);
}

TEST_CASE("memory does not grow with the number of steps, nor does the program") {
  auto memory = [](std::int64_t n) {
    auto f = [=](Array x) {
      return rp::sum(rp::fori_loop(std::int64_t{0}, n,
                                   [](Array, Array v) { return rp::sin(v) * 1.01; }, x,
                                   {.checkpoints = 10}));
    };
    return rp::jit(rp::grad(f)).lower(rp::ones({4096})).compile().memory_analysis();
  };
  const auto few = memory(100), many = memory(10'000'000);
  CHECK(few.peak_bytes == many.peak_bytes);
  CHECK(many.peak_bytes <= 16 * 4096 * 4);
}

TEST_CASE("carries that the reversal does not read are not kept") {
  using Pair = std::tuple<Array, Array>;
  const auto loss = [](bool is_while, bool has_sum) {
    return [=](Array x) {
      auto body = [=](Pair s) {
        auto [u, sum] = s;
        Array next = rp::sin(u) * 1.01;
        return Pair{next, has_sum ? sum + next : sum};
      };
      const Pair start{x, rp::zeros({has_sum ? 1024 : 1})};
      const rp::LoopOptions o{.checkpoints = 50};
      auto [u, sum] =
          is_while ? rp::fori_loop(
                         Array(0), Array(200), [=](Array, Pair s) { return body(s); }, start, o)
                   : rp::fori_loop(
                         0, 200, [=](Array, Pair s) { return body(s); }, start, o);
      return rp::sum(u * u) + rp::sum(sum * sum);
    };
  };
  const Array x = rp::linspace(0.1, 1.0, 1024);
  for (const bool is_while : {false, true}) {
    const auto memory = [&](bool has_sum) {
      const auto f = rp::jit(rp::grad(loss(is_while, has_sum)));
      return f.lower(x).compile().memory_analysis().peak_bytes;
    };
    CHECK(memory(true) < memory(false) + 8 * x.nbytes());
    const Array eager = rp::grad(loss(is_while, true))(x);
    check_close(rp::jit(rp::grad(loss(is_while, true)))(x), eager);
    auto sums = [=](Array v) {
      auto body = [](Pair s, rp::None) {
        auto [u, sum] = s;
        Array next = rp::sin(u) * 1.01;
        return std::pair{Pair{next, sum + next}, rp::none};
      };
      auto [u, sum] = rp::scan(body, Pair{v, rp::zeros({1024})}, rp::none, {.length = 200}).first;
      return rp::sum(u * u) + rp::sum(sum * sum);
    };
    check_close(eager, rp::grad(sums)(x));
  }
}

TEST_CASE("programs are read back from their text, and wrong ones are refused") {
  auto known = [](Array x) { return powers(x, rp::ones({3}), {.checkpoints = 2}); };
  auto unknown = [](Array x) {
    auto more = [](Array v) { return rp::sum(v) < 9; };
    return rp::sum(rp::while_loop(more, [](Array v) { return v * 1.5; }, x, {.checkpoints = 3}));
  };
  const auto round_trip = [](const auto& f) {
    const rp::FwdBwd both = rp::fwd_bwd(f, rp::ones({3}));
    for (const std::string& program :
         {both.forward.str(), both.backward.str(), text(rp::grad(f), rp::ones({3}))}) {
      CHECK(rp::parse_jaxpr(program).str() == program);
    }
    return both.backward.str();
  };
  const std::string backward = round_trip(known);
  round_trip(unknown);
  for (const char* wrong :
       {"num_carry=1", "num_consts=7", "num_back=-1", "checkpoints=0", "length=-4"}) {
    std::string broken = backward;
    const std::string key(wrong, std::string_view(wrong).find('=') + 1);
    const std::size_t at = broken.find(key), end = broken.find('\n', at);
    REQUIRE(at != std::string::npos);
    broken.replace(at, end - at, wrong);
    INFO(broken);
    CHECK_THROWS_AS(rp::parse_jaxpr(broken), rp::Error);
  }
}

TEST_CASE("reports tell what is kept and draw the loop") {
  auto f = [](Array x) {
    auto step = [](Array c, rp::None) { return std::pair{rp::sin(c), rp::none}; };
    return rp::sum(rp::scan(step, x, rp::none, {.length = 1000, .checkpoints = 10}).first);
  };
  const auto report = rp::residual_report(f, rp::ones({8}));
  bool told = false;
  for (const auto& r : report.residuals) {
    told = told || r.origin.find(
                       "10 checkpoints of f32[8] in a loop of 1000 steps, at most 3 "
                       "recomputations of a step") != std::string::npos;
  }
  CHECK(told);
  const auto compiled = rp::jit(rp::grad(f)).lower(rp::ones({8})).compile();
  const std::string page = rp::detail::report_page({rp::NamedCompiled("loop", compiled)});
  CHECK_MENTIONS(page, "steps played again");
  CHECK_MENTIONS(page, "steps reversed");
  const std::int64_t evaluations = rp::loop_schedule(1000, 10).advances + 1000;
  CHECK_MENTIONS(page, "{\"steps\":1000,\"evaluations\":" + std::to_string(evaluations) +
                           ",\"disk\":0,\"advances\":[0,999,0,");
}

TEST_CASE("budgets that are none") {
  auto loss = [](rp::ScanOptions o) {
    return [=] {
      rp::scan(
          [](Array c, Array v) {
            return std::pair{c * v, rp::none};
          },
          Array(1.0), rp::ones({4}), o);
    };
  };
  CHECK_MENTIONS(message<rp::TypeError>(loss({.checkpoints = 0})),
                 "scan: .checkpoints must be at least 1, got 0");
  CHECK_MENTIONS(message<rp::TypeError>(loss({.checkpoints = -3})),
                 "scan: .checkpoints must be at least 1, got -3");
  CHECK_MENTIONS(message<rp::TypeError>(loss({.checkpoints = 5})),
                 "scan: .checkpoints must not be more than the steps, got 5 for 4");
  CHECK_MENTIONS(message<rp::TypeError>([] {
                   rp::fori_loop(0, 0, [](Array, Array v) { return v; }, Array(1.0),
                                 {.checkpoints = 2});
                 }),
                 ".checkpoints must not be more than the steps, got 2 for 0");
  CHECK_MENTIONS(message<rp::TypeError>(loss({.checkpoint_bytes = 3})),
                 "scan: .checkpoint_bytes must hold one carry, got 3 for a carry of 4 bytes");
  CHECK_MENTIONS(message<rp::TypeError>(loss({.checkpoints = 2, .checkpoint_bytes = 8})),
                 "scan: .checkpoints and .checkpoint_bytes exclude each other, got both");
}

TEST_CASE("bodies that no loop can have: a carry that changes, a value stored outside") {
  const rp::ScanOptions o{.length = 4, .checkpoints = 2};
  const auto with = [=](auto body) {
    return [=] {
      rp::grad([=](Array x) { return rp::sum(rp::scan(body, x, rp::none, o).first); })(
          rp::ones({3}));
    };
  };
  CHECK_MENTIONS(message<rp::TypeError>(with([](Array c, rp::None) {
                   return std::pair{rp::concatenate({c, c}), rp::none};
                 })),
                 "scan: the carry must keep");
  CHECK_MENTIONS(message<rp::TypeError>(with([](Array c, rp::None) {
                   return std::pair{c.astype(rp::int32), rp::none};
                 })),
                 "scan: the carry must keep");
  // The body runs once, when it is traced: what it stores outside is a value of no step.
  Array stored;
  auto stores = [&](Array x) {
    auto body = [&](Array c, rp::None) {
      stored = rp::sin(c);
      return std::pair{stored * 1.1, rp::none};
    };
    Array last = rp::scan(body, x, rp::none, o).first;
    return rp::sum(last * stored);
  };
  CHECK_MENTIONS(message<rp::Error>([&] { rp::grad(stores)(rp::ones({3})); }),
                 "a traced value was used after its trace ended");
  CHECK_MENTIONS(message<rp::Error>([&] { rp::jit(rp::grad(stores))(rp::ones({3})); }),
                 "a traced value was used after its trace ended");
}
