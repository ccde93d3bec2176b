// JAX's RematTest, basics: values, closures, jit, vmap, nesting. docs/upstream_remat_tests.md has
// the table.
#include "remat/upstream.h"

using namespace upstream;

namespace {

Array sin_sin(Array x) {
  x = rp::sin(x);
  return rp::sin(x);
}
const Array three = rp::arange(3.0);

}  // namespace

TEST_CASE("remat_basic: the linear function evaluates sin once and cos twice") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto g = rp::checkpoint([](Array x) { return std::pair{sin_sin(x), Array(3.0)}; }, o);
    auto f = [g](Array x) { return g(x).first; };
    CHECK(f(2.0).item<float>() == doctest::Approx(std::sin(std::sin(2.0))));
    CHECK(rp::grad(f)(2.0).item<float>() ==
          doctest::Approx(std::cos(std::sin(2.0)) * std::cos(2.0)));
    const auto [y, linear] = rp::linearize(f, 2.0);
    CHECK(y.item<float>() == doctest::Approx(std::sin(std::sin(2.0))));
    CHECK(linear(3.0).item<float>() ==
          doctest::Approx(std::cos(std::sin(2.0)) * std::cos(2.0) * 3));
    CHECK(sin_cos(linear.jaxpr().str()) == SinCos{1, 2});
  }
}

TEST_CASE("remat_freevars: a closed-over intermediate value has its derivative") {
  auto plain = [](Array x) {
    const Array y = 2.0 * rp::sin(x);
    return rp::cos(x) * rp::sin(y);
  };
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = [o](Array x) {
      const Array y = 2.0 * rp::sin(x);
      return rp::checkpoint([y](Array v) { return rp::cos(v) * rp::sin(y); }, o)(x);
    };
    const auto [ours, linear] = rp::linearize(f, 2.0);
    const auto [wanted, plain_linear] = rp::linearize(plain, 2.0);
    check_close(ours, wanted);
    check_close(linear(3.0), plain_linear(3.0));
  }
}

TEST_CASE("remat_grad_python_control_flow: a closed-over number decides C++ control flow") {
  struct Held {  // without any hash
    Array value;
  };
  auto f = [](Array x) {
    const Held held{x};
    auto g = [held] {
      return held.value.item<float>() > 0 ? rp::sin(held.value) : rp::cos(held.value);
    };
    return rp::checkpoint(g)();
  };
  CHECK(f(2.0).item<float>() == doctest::Approx(std::sin(2.0)));
  CHECK(rp::grad(f)(2.0).item<float>() == doctest::Approx(std::cos(2.0)));
  CHECK(rp::grad(f)(-2.0).item<float>() == doctest::Approx(std::sin(2.0)));
}

TEST_CASE("remat_jit: checkpoint inside jit, grad of jit and jit of grad") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto g = rp::checkpoint(sin_sin, o);
    const double slope = std::cos(std::sin(2.0)) * std::cos(2.0);
    CHECK(rp::jit(g)(2.0).item<float>() == doctest::Approx(std::sin(std::sin(2.0))));
    CHECK(rp::grad(rp::jit(g))(2.0).item<float>() == doctest::Approx(slope));
    CHECK(rp::jit(rp::grad(g))(2.0).item<float>() == doctest::Approx(slope));
  }
}

TEST_CASE("remat_jit2: a function without arguments that closes over a value of jit") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = rp::jit([o](Array x) {
      const Array y = 2 * x;
      return rp::checkpoint([y] { return y; }, o)();
    });
    CHECK(f(3).item<int>() == 6);
  }
}

TEST_CASE("remat_jit3: einsum and a jitted product inside checkpoint") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = [](Array w, Array x) {
      const Array a = rp::dot(x, w);
      const Array b = rp::einsum("btd,bTd->btT", a, a);
      const Array c = rp::einsum("btT,btd->btd", b, a);
      return rp::sum(c);
    };
    CHECK(rp::grad(rp::checkpoint(f, o))(rp::ones({1, 1}), rp::ones({1, 1, 1})).item<float>() == 3);
    auto mul = rp::jit([](Array a, Array b) { return a * b; });
    auto square = [mul](Array w, Array x) {
      const Array a = mul(w, x);
      return mul(a, a);
    };
    CHECK(rp::grad(rp::checkpoint(square, o))(1.0, 1.0).item<float>() == 2);
  }
}

TEST_CASE("remat_vmap: mapped, and jacobians by columns and rows") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto g = rp::checkpoint(sin_sin, o);
    check_close(rp::vmap(g)(three), sin_sin(three));
    const Array slopes = rp::cos(rp::sin(three)) * rp::cos(three);
    check_close(rp::jacfwd(g)(three), rp::eye(3) * slopes);
    check_close(rp::jacrev(g)(three), rp::eye(3) * slopes);
    // A batching rule that makes a constant: the mapped index of a gather.
    auto pick = rp::checkpoint(
        [](Array x) {
          return rp::sum(x[rp::array(std::vector<int>{0, 1})]);
        },
        o);
    check_close(rp::vmap(pick)(rp::ones({20, 2})), rp::full({20}, 2.0));
  }
}

TEST_CASE("remat_vmap_not_leading_dim: the mapped axis is the second one") {
  const Array x = rp::arange(15.0).reshape({3, 5});
  for (const rp::CheckpointOptions& o : variants()) {
    check_close(rp::vmap(rp::checkpoint(sin_sin, o), {.in_axes = {1}})(x),
                rp::transpose(sin_sin(x)));
  }
}

TEST_CASE("remat_higher_order_autodiff: the gradient of the gradient") {
  auto f = [](Array x) { return rp::cos(rp::sin(x)); };
  for (const rp::CheckpointOptions& o : variants()) {
    check_close(rp::grad(rp::grad(rp::checkpoint(f, o)))(3.0), rp::grad(rp::grad(f))(3.0));
  }
}

TEST_CASE("remat_no_redundant_flops: each pass has sin of the constant argument once") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = rp::checkpoint([](Array x, Array y) { return rp::sin(x) * y; }, o);
    auto g = rp::jit([f](Array x) { return f(2.0, x); });
    check_close(rp::grad(g)(3.0), rp::sin(Array(2.0)));
    const rp::FwdBwd programs = rp::fwd_bwd(g, 3.0);
    CHECK(count(programs.forward.str(), " sin ") == 1);
    CHECK(count(programs.backward.str(), " sin ") == 1);
  }
}

TEST_CASE("remat_binomial_checkpointing: every half of four sins is checkpointed") {
  auto plain = [](Array x) { return sin_sin(sin_sin(x)); };
  for (const rp::CheckpointOptions& o : variants()) {
    auto half = rp::checkpoint(sin_sin, o);
    auto all = rp::checkpoint([half](Array x) { return half(half(x)); }, o);
    check_close(all(4.0), plain(4.0));
    check_close(rp::grad(all)(4.0), rp::grad(plain)(4.0));
  }
}

TEST_CASE("remat_symbolic_zeros: a checkpointed loop body that ignores its integer input") {
  auto f = [](Array d) {
    const Array start = rp::linspace(0.0, 5.0, 15).reshape({5, 3});
    auto move = rp::checkpoint([d](Array r, Array) {
      const Array force = d * r;
      return std::pair{r + 0.001 * force, rp::array(std::vector<float>{0})};
    });
    return rp::scan(move, start, rp::arange(2)).first(0, 1);
  };
  // start[0, 1] (1 + d / 1000)^2
  CHECK(rp::grad(f)(5.0).item<float>() == doctest::Approx(5.0 / 14 * 2 * 1.005 / 1000));
}

TEST_CASE("remat_nontrivial_env: static numbers, closures and a jitted loop around checkpoint") {
  using State = std::pair<Array, Array>;
  auto foo = rp::checkpoint([](State s, Array dt, int c) {
    const Array force = static_cast<double>(c * c) * s.first;
    return State{s.first, s.second + force * dt};
  });
  auto steps = rp::jit([foo](State s, int n, Array dt, int c) {
    auto body = [foo, dt, c](State t, rp::None) { return std::pair{foo(t, dt, c), rp::none}; };
    return rp::scan(body, s, rp::none, {.length = n}).first;
  });
  auto loss = [steps](Array u, Array target, int n) {
    const State last = steps(State{u, rp::zeros_like(u)}, n, Array(0.5), 1);
    return rp::mean(rp::square(last.second - target));
  };
  const Array u = rp::ones({8, 8}), target = rp::zeros({8, 8});
  CHECK(loss(u, target, 10).item<float>() == 25);  // (10 x 0.5)^2
  check_close(rp::grad(loss)(u, target, 10), rp::full({8, 8}, 50.0 / 64));
}

TEST_CASE("remat_scan2: checkpoint around a loop without scanned inputs and results") {
  auto f = rp::checkpoint([](Array x) {
    auto body = [](Array v, rp::None) { return std::pair{v + 1.0, rp::none}; };
    return rp::scan(body, x, rp::none, {.length = 1}).first;
  });
  CHECK(rp::grad(f)(1.0).item<float>() == 1);
}

TEST_CASE("remat_jit_static_argnum: a static bool decides inside jit and checkpoint") {
  auto f = rp::jit(rp::checkpoint([](bool add, Array y) { return add ? y + 1 : y; }));
  CHECK(f(true, 1).item<int>() == 2);
  CHECK(f(false, 1).item<int>() == 1);
}

TEST_CASE(
    "remat_eval_counter: two evaluations forward, three backward; two with a plain call inside") {
  auto e = [](Array x) { return rp::exp(x); };  // its derivative needs its value only
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = rp::checkpoint(e, o);
    auto nested = rp::checkpoint([f](Array x) { return rp::exp(f(x)); }, o);
    const rp::FwdBwd programs = rp::fwd_bwd(nested, rp::zeros({1}));
    CHECK(count(programs.forward.str(), "= exp ") == 2);
    CHECK(count(programs.backward.str(), "= exp ") == 3);
    auto call = rp::jit(e);
    auto with_call = rp::checkpoint([call](Array x) { return rp::exp(call(x)); }, o);
    const rp::FwdBwd plain = rp::fwd_bwd(with_call, rp::zeros({1}));
    CHECK(count(plain.forward.str(), "= exp ") == 2);
    CHECK(count(plain.backward.str(), "= exp ") == 2);
  }
}

TEST_CASE("escaped_tracer_remat: a value that escapes through shared state is an error") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = [o](Array x) {
      auto seen = std::make_shared<Array>(rp::zeros({}));
      auto g = [seen] {
        *seen = *seen + 1.0;
        return *seen;
      };
      const Array first = rp::checkpoint(g, o)();
      const Array second = rp::checkpoint([g] { return g(); }, o)();
      return x + first + second;
    };
    const std::string text = error_of([&] { return rp::jit(f)(1.0); });
    CHECK(text.find("trace: a traced value was used after its trace ended, got f32[], made at ") ==
          0);
    CHECK(contains(text, "hint: return the value from the traced function instead of storing it"));
  }
}

TEST_CASE("checkpoint_dropvars: a call inside that reads nothing, one of its results unused") {
  for (const rp::CheckpointOptions& o : variants()) {
    auto f = rp::checkpoint(
        [](Array x) {
          return rp::jit([x] { return std::pair{x, x}; })().second;
        },
        o);
    CHECK(rp::grad(f)(3.0).item<float>() == 1);
  }
}

TEST_CASE("dce keeps a call that is read but reads nothing") {
  auto f = rp::checkpoint([](Array x) { return rp::jit([] { return Array(3.0); })() * x; });
  CHECK(rp::grad(f)(3.0).item<float>() == 3);
}
