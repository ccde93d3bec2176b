// make_jaxpr, eval, eval_shape, parse_jaxpr, fwd_bwd: programs as values.
#include "derivatives.h"

namespace {

using namespace check;

Array f(Array x, Array y) {
  Array s = rp::sin(x);
  return s * y;
}

}  // namespace

TEST_CASE("a program knows its types and its size, and evaluates") {
  const rp::Jaxpr p = rp::make_jaxpr(f)(rp::ones({3}), rp::ones({3}));
  CHECK(p.str() ==
        "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = sin a; d:f32[3] = mul c b in (d,) }");
  CHECK(p.size() == 2);
  CHECK(p.in_types() == std::vector<rp::Type>(2, rp::Type{rp::float32, {3}}));
  CHECK(p.out_types() == std::vector<rp::Type>(1, rp::Type{rp::float32, {3}}));
  CHECK(p.consts().empty());
  const Array x = rp::array({0.1, 0.2, 0.3}), y = rp::array({1.0, 2.0, 3.0});
  CHECK(numbers(p.eval({x, y})[0]) == numbers(f(x, y)));
  CHECK_THROWS_AS(p.eval({x}), rp::TypeError);
  CHECK_THROWS_AS(p.eval({x, rp::ones({4})}), rp::TypeError);
  CHECK(p.str(30).find('\n') != std::string::npos);
}

TEST_CASE("closed-over arrays are constants before the semicolon, numbers are literals") {
  const Array k = rp::array({1.0, 2.0});
  const rp::Jaxpr p = rp::make_jaxpr([&](Array x) {
    Array y = x * k;
    return y + 3.0;
  })(rp::ones({2}));
  CHECK(p.str() ==
        "{ lambda a:f32[2]; b:f32[2]. let\n"
        "    c:f32[2] = mul b a\n"
        "    d:f32[2] = add c 3.0:f32[]\n"
        "  in (d,) }");
  REQUIRE(p.consts().size() == 1);
  CHECK(numbers(p.consts()[0]) == std::vector<double>{1, 2});
  CHECK(p.in_types().size() == 1);
  CHECK(numbers(p.eval({rp::ones({2})})[0]) == std::vector<double>{4, 5});
}

TEST_CASE("arguments and results of every structure are flattened in order") {
  auto g = [](std::map<std::string, Array> m, std::tuple<Array, int> t) {
    return std::vector{m.at("b"), std::get<0>(t), m.at("a")};
  };
  const auto p = rp::make_jaxpr(g)({{"a", Array(1.0)}, {"b", Array(2)}}, {rp::ones({2}), 3});
  CHECK(p.str() == "{ lambda ; a:f32[] b:i32[] c:f32[2]. let  in (b, c, a) }");
}

TEST_CASE("eval_shape gives types without computing") {
  auto heavy = [](Array x, Array w) {
    return std::tuple{rp::matmul(x, w), std::map<std::string, Array>{{"n", rp::sum(w)}}};
  };
  const auto [y, rest] = rp::eval_shape(heavy, rp::ones({4, 3}), rp::ones({3, 2}));
  CHECK(y.shape() == rp::Shape{4, 2});
  CHECK(rest.at("n").shape().empty());
  CHECK(rest.at("n").dtype() == rp::float32);
  CHECK_THROWS_AS(rp::eval_shape(heavy, rp::ones({4, 3}), rp::ones({4, 2})), rp::TypeError);
}

TEST_CASE("a printed program reads back and computes the same") {
  auto g = [](Array c, Array xs) {
    return rp::scan([](Array k, Array x) { return std::pair{rp::sin(k) * x, k}; }, c, xs);
  };
  const Array c = rp::full({}, 0.5, rp::float32), xs = rp::array({1.0, 2.0});
  const rp::Jaxpr p = rp::make_jaxpr(g)(c, xs);
  const rp::Jaxpr again = rp::parse_jaxpr(p.str());
  CHECK(again.str() == p.str());
  CHECK(numbers(again.eval({c, xs})[1]) == numbers(p.eval({c, xs})[1]));
}

TEST_CASE("forward and backward programs fit together") {
  const Array x = doubles({0.5, 1.0}), y = doubles({2.0, 3.0});
  const rp::FwdBwd p = rp::fwd_bwd(f, x, y);
  const Arrays forward = p.forward.eval({x, y});
  Arrays in(forward.begin() + 1, forward.end());
  in.push_back(rp::ones_like(forward[0]));
  const Arrays grads = p.backward.eval(in);
  REQUIRE(grads.size() == 2);
  check_close(grads[0], y * rp::cos(x), 1e-14);
  check_close(grads[1], rp::sin(x), 1e-14);
}

TEST_CASE("a linearized function shows its linear program, residuals as constants") {
  const auto [out, linear] = rp::linearize([](Array x) { return rp::sin(x); }, Array(1.0));
  CHECK(linear.jaxpr().str() == "{ lambda a:f32[]; b:f32[]. let c:f32[] = mul b a in (c,) }");
  CHECK(linear.jaxpr().consts()[0].item<double>() == doctest::Approx(std::cos(1.0)));
}

TEST_CASE("dce_jaxpr keeps what the wanted outputs need and says which arguments these are") {
  const Array constant = rp::array({1.0, 2.0});
  const auto two = [&](Array x, Array y, Array z) {
    const Array a = rp::sin(x) + constant, b = rp::cos(y) * z;
    return std::pair{a, b};
  };
  const Array x = rp::array({0.1, 0.2}), y = rp::array({0.3, 0.4}), z = rp::array({0.5, 0.6});
  const rp::Jaxpr p = rp::make_jaxpr(two)(x, y, z);
  const rp::LiveJaxpr first = rp::dce_jaxpr(p, {true, false}),
                      second = rp::dce_jaxpr(p, {false, true});
  CHECK(first.used_args == std::vector<bool>{true, false, false});
  CHECK(second.used_args == std::vector<bool>{false, true, true});
  CHECK(numbers(first.jaxpr.eval({x})[0]) == numbers(two(x, y, z).first));
  CHECK(numbers(second.jaxpr.eval({y, z})[0]) == numbers(two(x, y, z).second));
  CHECK_THROWS_WITH_AS(
      rp::dce_jaxpr(p, {true}),
      doctest::Contains("dce_jaxpr: one flag for each output is needed, got 1 for 2"),
      rp::TypeError);
}
