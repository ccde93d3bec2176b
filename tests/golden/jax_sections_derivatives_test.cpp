// Sections g25: derivatives of derivatives, of loops, of mapped conditions and of jits that close
// over traced values.
#include "golden/sections.h"

using namespace golden;

namespace {

const Array one = rp::full({}, 1, rp::float32), two = rp::full({}, 2, rp::float32),
            three = rp::full({}, 3, rp::float32), four = rp::full({}, 4, rp::float32);
const Array x = 1.0, y = 2.0, v = rp::ones({3}), positive = v > 0.0;

template <class F, class... A>
void same(const std::string& heading, const F& f, const A&... args) {
  Section s("g25_derivatives", heading);
  s.traced(f, args...);
  s.end();
}
// arguments -> (results, residuals), in the order of vjp.
template <class F, class... A>
void same_forward(const std::string& heading, const F& f, const A&... args) {
  Section s("g25_derivatives", heading);
  s.forward(f, args...);
  s.end();
}

Array sine(Array a) { return rp::sin(a); }
Array cube(Array a) {
  Array square = a * a;
  return square * a;
}
Array slope(Array a) { return rp::grad(sine)(a); }

// One carry, three steps.
template <class F>
Array thrice(const F& step, Array init) {
  return rp::scan(
             [&](Array c, rp::None) {
               return std::pair{step(c), rp::none};
             },
             init, rp::none, {.length = 3})
      .first;
}
Array twice_sine(Array i) {
  Array s = rp::sin(i);
  return s * 2.0;
}
Array times_scanned(Array init) {
  const auto step = [](Array c, Array i) {
    Array a = rp::checkpoint(twice_sine)(i);
    return std::pair{c * a, rp::none};
  };
  return rp::scan(step, init, rp::arange(3, rp::float32)).first;
}
Array times_constant(Array init, Array w) {
  return thrice(
      [w](Array c) {
        Array a = rp::checkpoint(twice_sine)(w);
        return c * a;
      },
      init);
}
auto times_both(const rp::CheckpointOptions& options) {
  return [options](Array init, Array w) {
    const auto both = rp::checkpoint(
        [](Array a, Array i) {
          Array s = rp::sin(a);
          Array c = rp::cos(i);
          return s * c;
        },
        options);
    const auto step = [both, w](Array c, Array i) {
      Array a = both(w, i);
      return std::pair{c * a, rp::none};
    };
    return rp::scan(step, init, rp::arange(3, rp::float32)).first;
  };
}
Array two_checkpoints(Array init) {
  return thrice(
      [](Array c) {
        c = rp::checkpoint([](Array a) {
          a = rp::sin(a);
          return rp::sin(a);
        })(c);
        return rp::checkpoint([](Array a) {
          Array b = rp::cos(a);
          return b * a;
        })(c);
      },
      init);
}
Array chosen_by_scanned(Array init) {
  const auto step = [](Array c, Array i) {
    Array a = rp::checkpoint(twice_sine)(i);
    Array large = a > 1.0;
    Array next = rp::cond(
        large, [a](Array k) { return k * a; }, [](Array k) { return rp::sin(k); }, c);
    return std::pair{next, rp::none};
  };
  return rp::scan(step, init, rp::arange(3, rp::float32)).first;
}

Array scaled_or_sine(Array p, Array a) {
  return rp::cond(
      p, [](Array b) { return b * 2.5; }, [](Array b) { return rp::sin(b); }, a);
}

Array closing(Array a, Array b) {
  const auto g = rp::jit([a](Array z) {
    Array s = rp::sin(z);
    return s * a;
  });
  Array first = g(b);
  Array doubled = b * 2.0;
  Array second = g(doubled);
  return first + second;
}

// Loops over constants a, b, c.
Array by_results(Array a, Array b, Array c, Array init) {
  const auto step = [=](Array k, rp::None) {
    Array s = rp::sin(k);
    Array u = s * a;
    Array o = rp::cos(k);
    Array w = o * b;
    return std::pair{w, u * c};
  };
  const auto [k, ys] = rp::scan(step, init, rp::none, {.length = 3});
  Array sum = rp::sum(ys);
  return k + sum;
}
Array by_sum(Array a, Array b, Array c, Array init) {
  return thrice(
      [=](Array k) {
        Array u = k * a;
        Array w = k * b;
        Array z = k * c;
        Array s = rp::sin(z);
        Array t = w * u;
        return s + t;
      },
      init);
}
Array by_carries(Array a, Array b, Array c, Array init) {
  const auto step = [=](Pair k, rp::None) {
    Array s = rp::sin(k.second);
    Array first = s * c;
    Array t = rp::sin(k.first);
    Array u = t * a;
    Array second = u + b;
    return std::pair{Pair{first, second}, rp::none};
  };
  const Pair r = rp::scan(step, Pair{init, init}, rp::none, {.length = 3}).first;
  return r.first + r.second;
}
Array by_invariant(Array a, Array b, Array c, Array init) {
  return thrice(
      [=](Array k) {
        Array t = k * b;
        Array s = rp::sin(t);
        Array z = s * a;
        Array o = rp::cos(c);
        Array w = o * k;
        return z + w;
      },
      init);
}
template <class F>
auto second_of(const F& f) {
  return rp::grad<3>(
      [f](Array a, Array b, Array c, Array d) { return rp::grad<3>(f)(a, b, c, d); });
}

}  // namespace

TEST_CASE("g25: the seed of an inner gradient is a residual of the outer one") {
  same("seed: grad of grad of sin", rp::grad(slope), x);
  same("seed: grad of grad of a cube", rp::grad([](Array a) { return rp::grad(cube)(a); }), x);
  const auto product = [](Array a) {
    const auto [value, gradient] = rp::value_and_grad([](Array b) {
      Array s = rp::sin(b);
      return s * 2.0;
    })(a);
    return value * gradient;
  };
  same("seed: grad through value_and_grad", rp::grad(product), x);
  same_forward("seed: forward of grad", slope, x);
  same("seed: in checkpoint", rp::grad(rp::checkpoint(slope)), x);
  const auto descent = [](Array c) {
    Array g = slope(c);
    Array step = 0.1 * g;
    return c - step;
  };
  same("seed: in scan", rp::grad([descent](Array a) { return thrice(descent, a); }), x);
  const auto sums = [](Array a) {
    const auto inner = [](Array b) {
      Array s = rp::sin(b);
      Array p = s * b;
      return rp::sum(p);
    };
    return rp::sum(rp::grad(inner)(a));
  };
  same("seed: of a sum", rp::grad(sums), v);
  same("seed: in jit", rp::grad(rp::jit(slope)), x);
  same("seed: third derivative", rp::grad(rp::grad(rp::grad(sine))), x);
}

TEST_CASE(
    "g25: what a loop leaves of its checkpoints is marked, what does not change runs before it") {
  const rp::CheckpointOptions everything{.policy = P::everything_saveable};
  same("loop: checkpoint of scanned values", rp::grad(times_scanned), one);
  same("loop: checkpoint of constants", rp::grad(times_constant), one, two);
  same("loop: checkpoint of both", rp::grad(times_both({})), one, two);
  same("loop: checkpoint of both, everything saved", rp::grad(times_both(everything)), one, two);
  same("loop: checkpoint of a loop of checkpoints", rp::grad(rp::checkpoint(two_checkpoints)), one);
  same("loop: checkpoint of a loop, everything saved",
       rp::grad(rp::checkpoint(two_checkpoints, everything)), one);
  same("loop: checkpoint and cond", rp::grad(chosen_by_scanned), one);
}

TEST_CASE("g25: numbers in the branches of a mapped cond are no residuals") {
  const auto sum_of = [](auto mapped) {
    return [mapped](Array p, Array a) { return rp::sum(mapped(p, a)); };
  };
  same("mapped cond: grad of the sum, one predicate",
       rp::grad<1>(sum_of(rp::vmap(scaled_or_sine, {.in_axes = {std::nullopt, 0}}))),
       rp::array(true), v);
  same("mapped cond: grad of the sum, a predicate each",
       rp::grad<1>(sum_of(rp::vmap(scaled_or_sine))), positive, v);
  same("mapped cond: vmap of grad", rp::vmap(rp::grad<1>(scaled_or_sine)), positive, v);
  same_forward(
      "mapped cond: forward",
      [](Array a) {
        Array p = v > 0.0;
        return rp::vmap(scaled_or_sine)(p, a);
      },
      v);
  same_forward("mapped: forward of a product", rp::vmap([](Array a) {
                 Array s = rp::sin(a);
                 return s * 2.5;
               }),
               v);
  same_forward("mapped: forward of jit", rp::vmap(rp::jit([](Array a) {
                 Array s = rp::sin(a);
                 return s * 2.5;
               })),
               v);
}

TEST_CASE("g25: a jit that closes over a traced value is one program, however often it is called") {
  same("closing jit: called twice", closing, x, y);
  same("closing jit: grad", rp::grad(closing), x, y);
  same("closing jit: both gradients", rp::grad<0, 1>(closing), x, y);
  const auto over_two = [](Array a, Array w, Array b) {
    const auto g = rp::jit([a, w](Array z) {
      Array s = rp::sin(z);
      Array p = s * a;
      return p + w;
    });
    Array first = g(b);
    Array second = g(b);
    second = g(second);
    return first + second;
  };
  same("closing jit: over two values", over_two, x, Array(3.0), y);
  const auto types = [](Array a, Array b) {
    const auto g = rp::jit([a](Array z) {
      Array s = rp::sin(z);
      return s * a;
    });
    Array first = g(b);
    first = rp::sum(first);
    Array second = rp::sum(b);
    second = g(second);
    Array sum = first + second;
    Array third = b * 2.0;
    third = g(third);
    third = rp::sum(third);
    return sum + third;
  };
  same("closing jit: other types", types, x, v);
  same("closing jit: in checkpoint", rp::checkpoint(closing), x, y);
  const auto looped = [](Array a, Array b) {
    const auto g = rp::jit([a](Array z) {
      Array s = rp::sin(z);
      return s * a;
    });
    b = g(b);
    return rp::scan(
               [g](Array c, rp::None) {
                 return std::pair{g(c), rp::none};
               },
               b, rp::none, {.length = 2})
        .first;
  };
  same("closing jit: outside and inside a loop", looped, one, two);
  same(
      "closing jit: jvp",
      [](Array a, Array b) {
        return rp::jvp(closing, std::tuple{a, b}, std::tuple{a, b});
      },
      x, y);
  same("closing jit: vmap", rp::vmap(closing), v, v);
}

TEST_CASE("g25: constants of loops and residuals are listed from the results back") {
  same("order: constants by the results they reach", rp::grad<3>(by_results), one, two, three,
       four);
  same("order: constants of a sum", rp::grad<3>(by_sum), one, two, three, four);
  same("order: constants of two carries", rp::grad<3>(by_carries), one, two, three, four);
  same("order: all gradients", rp::grad<0, 1, 2, 3>(by_invariant), one, two, three, four);
  same("order: second derivative, results", second_of(by_results), one, two, three, four);
  same("order: second derivative, sum", second_of(by_sum), one, two, three, four);
  same("order: second derivative, carries", second_of(by_carries), one, two, three, four);
  same("order: second derivative, invariant", second_of(by_invariant), one, two, three, four);
  same("order: second derivative of a loop of checkpoints", rp::grad(rp::grad(two_checkpoints)),
       one);
}
