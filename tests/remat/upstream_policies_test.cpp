// JAX's RematTest, policies: what is in the linear program says what is computed again.
#include "remat/upstream.h"

#include <ostream>

using namespace upstream;

namespace {

const rp::CheckpointOptions dots{.policy = P::checkpoint_dots};
const rp::CheckpointOptions plain_dots{.policy = P::checkpoint_dots_with_no_batch_dims};
const Array small = rp::full({2, 2}, 0.4);

Array square_product(Array x) { return rp::dot(x, x); }

// Three products, each followed by a sine.
template <class Product, class Sine>
auto three_layers(Product product, Sine sine) {
  return [product, sine](Array x) {
    for (int i = 0; i < 3; ++i) {
      x = product(x);
      x = sine(x);
    }
    return x;
  };
}
Array sine(Array x) { return rp::sin(x); }
Array sine_of_thousandth(Array x) { return rp::sin(x * 1e-3); }
Array layers_of(Array W, Array x) {
  for (int i = 0; i < 3; ++i) {
    x = rp::dot(x, W);
    x = rp::sin(x);
  }
  return x;
}

struct Counts {
  std::size_t sin, cos, dot;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.sin << " sin, " << c.cos << " cos, " << c.dot << " dot";
}
Counts counts(const std::string& text) {
  return {count(text, " sin "), count(text, " cos "), count(text, " dot_")};
}
// Of the linear program and of the backward program.
template <class F>
void check_backward(const F& f, const Counts& wanted) {
  const auto [y, backward] = rp::vjp(f, rp::ones({5, 5}));
  CHECK(counts(backward.jaxpr().str()) == wanted);
  CHECK(counts(rp::fwd_bwd(f, rp::ones({5, 5})).backward.str()) == wanted);
  check_grads(rp::jit(f), rp::full({5, 5}, 0.3));
}

// Functions with derivative rules that call the function itself.
Array sin_by_jvp(Array x) {
  auto rule = [](std::tuple<Array> p, std::tuple<Array> t) {
    const Array y = sin_by_jvp(std::get<0>(p));
    return std::pair{y, rp::cos(std::get<0>(p)) * std::get<0>(t)};
  };
  return rp::custom_jvp(sine, rule)(x * 1e-3);
}
Array sin_by_vjp(Array x) {
  auto fwd = [](Array v) { return std::pair{sin_by_vjp(v), v}; };
  auto bwd = [](Array v, Array ct) { return std::tuple{rp::cos(v) * ct}; };
  return rp::custom_vjp(sine, fwd, bwd)(x);
}
Array sum_by_jvp(Array x) {
  auto rule = [](std::tuple<Array> p, std::tuple<Array> t) {
    const Array y = sum_by_jvp(std::get<0>(p));
    return std::pair{y, sum_by_jvp(std::get<0>(t))};
  };
  return rp::custom_jvp([](Array v) { return rp::sum(v, 0); }, rule)(x);
}

template <class F>
auto twice_in_a_loop(F f) {
  return [f](Array x) {
    auto body = [f](Array v, rp::None) { return std::pair{f(v), rp::none}; };
    return rp::scan(body, x, rp::none, {.length = 2}).first;
  };
}

}  // namespace

TEST_CASE("remat_custom_policy: all, nothing, or sin is saved, the square plain or in jit") {
  auto square = [](Array x) { return x * x; };
  auto run = [](auto squared, const rp::Policy& policy, bool has_sin, bool has_cos) {
    auto plain = [squared](Array x) { return rp::sin(squared(rp::sin(x))); };
    auto f = rp::checkpoint(plain, {.policy = policy});
    const auto [y, linear] = rp::linearize(f, 1.0);
    CHECK(contains(linear.jaxpr().str(), " sin ") == has_sin);
    CHECK(contains(linear.jaxpr().str(), " cos ") == has_cos);
    const auto [wanted, tangent] = rp::jvp(plain, std::tuple{Array(1.0)}, std::tuple{Array(2.0)});
    check_close(y, wanted);
    check_close(linear(2.0), tangent);
    check_grads(f, Array(3.0));
  };
  const rp::Policy always = [](const rp::EquationInfo&) { return true; };
  run(square, always, false, false);
  run(square, save_never(), true, true);
  run(square, save_prim("sin"), false, true);
  run(rp::jit(square), always, false, false);
  run(rp::jit(square), save_never(), true, true);
  run(rp::jit(square), save_prim("sin"), false, true);
}

TEST_CASE("remat_custom_policy_save_cos: saved coefficients leave nothing to compute again") {
  auto f =
      rp::checkpoint([](Array x) { return rp::sin(rp::sin(x)); }, {.policy = save_prim("cos")});
  CHECK(sin_cos(linear_text(f, 1.0)) == SinCos{0, 0});
  check_grads(f, Array(3.0));
}

TEST_CASE(
    "remat_checkpoint_dots: two sins and six products, by every policy that saves the products") {
  auto f = three_layers(square_product, sine);
  auto by_letters = three_layers([](Array x) { return rp::einsum("ij,jk->ik", x, x); }, sine);
  for (const auto& text :
       {linear_text(rp::checkpoint(f, dots), rp::ones({2, 2})),
        linear_text(rp::checkpoint(by_letters, plain_dots), rp::ones({2, 2})),
        linear_text(rp::jit(rp::checkpoint(three_layers(square_product, sine_of_thousandth), dots)),
                    rp::ones({2, 2}))}) {
    CHECK(count(text, " sin ") == 2);
    CHECK(count(text, " dot_") == 6);
  }
  check_grads(rp::checkpoint(f, dots), small);
  check_grads(rp::checkpoint(by_letters, plain_dots), small);
  check_grads(rp::jit(rp::checkpoint(three_layers(square_product, sine_of_thousandth), dots)),
              small);
}

TEST_CASE(
    "remat_checkpoint_dots_with_no_batch_dims2: batched products are computed again, nine in all") {
  auto f = rp::checkpoint(
      three_layers([](Array x) { return rp::einsum("nij,njk->nik", x, x); }, sine), plain_dots);
  const std::string text = linear_text(f, rp::ones({3, 2, 2}));
  CHECK(count(text, " sin ") == 2);
  CHECK(count(text, " dot_general") == 9);
  check_grads(f, rp::full({3, 2, 2}, 0.4));
}

TEST_CASE("remat_checkpoint_dots_inside_scan: the saved carry saves one sin per step") {
  check_backward(
      [](Array W) {
        auto layers = rp::checkpoint([W](Array x) { return layers_of(W, x); }, dots);
        return twice_in_a_loop(layers)(rp::ones({5}, W.dtype()));
      },
      {2, 3, 6});
}

TEST_CASE("remat_checkpoint_dots_outside_scan: the loop plays all its sins again") {
  check_backward(rp::checkpoint(
                     [](Array W) {
                       return twice_in_a_loop([W](Array x) { return layers_of(W, x); })(
                           rp::ones({5}, W.dtype()));
                     },
                     dots),
                 {3, 3, 6});
}

TEST_CASE("remat_checkpoint_dots_inside_cond and _outside_cond: two sins, five products") {
  auto keep = [](Array x) { return x; };
  check_backward(
      [keep](Array W) {
        const Array x = rp::ones({5}, W.dtype());
        auto layers = rp::checkpoint([W](Array v) { return layers_of(W, v); }, dots);
        return rp::cond(rp::sum(x) > 0, layers, keep, x);
      },
      {2, 3, 5});
  check_backward(rp::checkpoint(
                     [keep](Array W) {
                       const Array x = rp::ones({5}, W.dtype());
                       return rp::cond(
                           rp::sum(x) > 0, [W](Array v) { return layers_of(W, v); }, keep, x);
                     },
                     dots),
                 {2, 3, 5});
}

TEST_CASE(
    "remat_custom_jvp_policy and remat_custom_vjp_policy: rules inside checkpoint, also in a "
    "loop") {
  auto by_jvp = rp::checkpoint(three_layers(square_product, sin_by_jvp), dots);
  check_grads(by_jvp, Array(3.0));
  check_grads(twice_in_a_loop(by_jvp), Array(3.0));
  auto product = rp::jit([](Array x) { return rp::dot(x, rp::dot(x, x)); });
  auto by_vjp =
      rp::checkpoint(three_layers(product, [](Array x) { return sin_by_vjp(x * 1e-3); }), dots);
  check_grads(by_vjp, Array(3.0), /*forward=*/false);
  check_grads(twice_in_a_loop(by_vjp), Array(3.0), /*forward=*/false);
}

TEST_CASE("remat_custom_jvp_linear_policy: a linear rule, alone and per step") {
  auto f = rp::checkpoint(sum_by_jvp, dots);
  check_grads(f, rp::ones({3}));
  check_grads(
      [f](Array x) {
        auto body = [f](rp::None, Array v) { return std::pair{rp::none, f(v)}; };
        return rp::scan(body, rp::none, x).second;
      },
      rp::ones({2, 3}));
}

TEST_CASE("remat_dropvar_policy: a gradient inside checkpoint of one of two results") {
  auto both = [](Array x) { return std::pair{x, x}; };
  auto g = rp::checkpoint(
      [both](Array x) { return rp::grad([both](Array v) { return both(v).first; })(x); }, dots);
  CHECK(g(3.0).item<float>() == 1);
  CHECK(rp::grad(g)(3.0).item<float>() == 0);
}

TEST_CASE("constants_not_hoisted: constants made inside are no residuals") {
  auto residuals = [](auto f) {
    return rp::saved_residuals(rp::checkpoint(f, {.policy = save_never()}), rp::ones({2, 2}))
        .size();
  };
  CHECK(residuals([](Array x) { return rp::einsum("ii->i", x); }) == 0);
  CHECK(residuals([](Array x) { return rp::zeros_like(x) * x; }) == 0);
  CHECK(residuals([](Array x) { return rp::zeros_like(x) * rp::sin(x); }) == 1);
}
