// One case per kind of misuse: the message names the rule and the facts, the user's file and line,
// and the fix when it is known.
#include "error_text.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

namespace rp = reprise;
using rp::Array;

namespace {

const std::string here = "errors_test.cpp:";

}  // namespace

TEST_CASE("shape mismatch names both types and the line") {
  const Array a = rp::ones({2, 3}), b = rp::ones({4, 5});
  const std::string text = message<rp::TypeError>([&] { return a + b; });
  CHECK_MENTIONS(text, "add");
  CHECK_MENTIONS(text, "f32[2,3]");
  CHECK_MENTIONS(text, "f32[4,5]");
  CHECK_MENTIONS(text, here);
  const std::string lax = message<rp::TypeError>([&] { return rp::lax::mul(a, b); });
  CHECK_MENTIONS(lax, "mul: shapes do not match, got f32[2,3] and f32[4,5]");
  CHECK_MENTIONS(lax, here);
}

TEST_CASE("a product says which contracting sizes differ") {
  const Array a = rp::ones({2, 3}), b = rp::ones({4, 5});
  const std::string text = message<rp::TypeError>([&] { return rp::dot(a, b); });
  CHECK_MENTIONS(text, "3");
  CHECK_MENTIONS(text, "4");
  CHECK_MENTIONS(text, here);
}

TEST_CASE("dtype mismatch in lax operations suggests a conversion") {
  const Array a = rp::ones({2}), b = rp::ones({2}, rp::int32);
  const std::string text = message<rp::TypeError>([&] { return rp::lax::add(a, b); });
  CHECK_MENTIONS(text, "add: dtypes differ, got f32[2] and i32[2]");
  CHECK_MENTIONS(text, "hint:");
  CHECK_MENTIONS(text, here);
}

TEST_CASE("operations say which dtypes they take") {
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::lax::sin(rp::ones({2}, rp::int32)); }),
                 "sin: a floating dtype is needed, got i32[2]");
  CHECK_MENTIONS(
      message<rp::TypeError>([] { return rp::lax::bitwise_and(rp::ones({2}), rp::ones({2})); }),
      "and: an integer or bool dtype is needed, got f32[2]");
}

TEST_CASE("a bad axis names the axis and the number of dimensions") {
  const Array x = rp::ones({2, 3});
  const std::string text = message<rp::TypeError>([&] { return rp::sum(x, 2); });
  CHECK_MENTIONS(text, "axis 2");
  CHECK_MENTIONS(text, here);
  CHECK_MENTIONS(message<rp::TypeError>([&] { return x.shape(-3); }), "axis -3");
}

TEST_CASE("a static index out of range is an error with its line") {
  const Array x = rp::ones({3});
  const std::string text = message<rp::TypeError>([&] { return x[3]; });
  CHECK_MENTIONS(text, "3");
  CHECK_MENTIONS(text, "f32[3]");
}

TEST_CASE("max, min and argmax of nothing are errors; sum, prod and dot of nothing are not") {
  const Array none = rp::zeros({0});
  for (auto f : {+[](Array x) { return rp::max(x); }, +[](Array x) { return rp::min(x); },
                 +[](Array x) { return rp::argmax(x); }}) {
    CHECK_MENTIONS(message<rp::TypeError>([&] { return f(none); }), "f32[0]");
  }
  CHECK(rp::sum(none).item<float>() == 0);
  CHECK(rp::prod(none).item<float>() == 1);
  CHECK(rp::dot(none, none).item<float>() == 0);
}

TEST_CASE("integer division has JAX's answers for zero and the smallest number") {
  const Array x = rp::array({7, -7}), zero = rp::array({0, 0});
  CHECK(rp::lax::div(x, zero).to_vector<int>() == std::vector<int>{-1, -1});
  CHECK(rp::lax::rem(x, zero).to_vector<int>() == std::vector<int>{7, -7});
  const Array smallest =
      rp::array(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
  CHECK(rp::lax::div(smallest, rp::array({-1})).item<int>() ==
        std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("a number needed while tracing names the function, the transform and the argument") {
  auto f =
      rp::jit([](Array x, Array y) { return x.item<float>() > 0 ? x : y; }, {.name = "choose"});
  const std::string text = message<rp::TraceError>([&] { return f(1.0, 2.0); });
  CHECK_MENTIONS(text,
                 "item: a number is needed while tracing the function choose for jit, got f32[]");
  CHECK_MENTIONS(text, "it depends on the value of the argument args[0]");
  CHECK_MENTIONS(text, "hint: make the argument static");
  CHECK_MENTIONS(text, here);
  auto sum = rp::jit([](Array x, Array y) { return (x + y).item<float>() > 0 ? x : y; });
  CHECK_MENTIONS(message<rp::TraceError>([&] { return sum(1.0, 2.0); }),
                 "it depends on the values of the arguments args[0] and args[1]");
  for (auto g : {+[](Array x) { return rp::vmap([](Array v) { return v + v.item<float>(); })(x); },
                 +[](Array x) {
                   rp::make_jaxpr([](Array v) { return v + rp::sum(v).item<float>(); })(x);
                   return x;
                 },
                 +[](Array x) {
                   return rp::scan(
                              [](Array c, Array v) {
                                return std::pair{c + v.item<float>(), v};
                              },
                              0.0, x)
                       .first;
                 }}) {
    CHECK_MENTIONS(message<rp::TraceError>([&] { return g(rp::ones({3})); }), "a number is needed");
  }
}

TEST_CASE("reading the elements of a traced value is an error") {
  auto f = [](Array x) {
    x.data<float>();
    return x;
  };
  CHECK_MENTIONS(message<rp::TraceError>([&] { return rp::grad(f)(1.0); }),
                 "data: a traced value has no elements, got f32[]");
}

TEST_CASE("a leaked traced value is an error that names the line where it was made") {
  Array leaked;
  rp::make_jaxpr([&](Array x) {
    leaked = rp::sin(x);
    return x;
  })(1.0);
  const std::string text = message<rp::TraceError>([&] { return leaked + 1.0; });
  CHECK_MENTIONS(
      text, "a traced value was used after its trace ended, got f32[], made at errors_test.cpp:");
  CHECK_MENTIONS(text, "hint: return the value");
  // In a later trace too: trace ids are never reused.
  CHECK_MENTIONS(message<rp::TraceError>(
                     [&] { return rp::make_jaxpr([&](Array x) { return x + leaked; })(1.0); }),
                 "after its trace ended");
}

TEST_CASE("a traced value belongs to its thread") {
  std::string text;
  rp::make_jaxpr([&](Array x) {
    std::thread other([&] { text = message<rp::TraceError>([&] { return x + 1.0; }); });
    other.join();
    return x;
  })(1.0);
  CHECK_MENTIONS(text, "a traced value belongs to the thread that made it, got f32[]");
}

TEST_CASE("an array that holds nothing is an error, not a crash") {
  Array empty;
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::sin(empty); }),
                 "used before a value was assigned");
}

TEST_CASE("an array that was given away says so") {
  auto step = rp::jit([](Array x) { return x * 2.0; }, {.donate_argnums = {0}});
  Array x = rp::ones({3});
  const Array y = step(std::move(x));
  const std::string text =
      message<rp::TypeError>([&] { return rp::sin(x); });  // NOLINT: that is the mistake
  CHECK_MENTIONS(text,
                 "hint: assign it first; one that was given away with std::move, as a donated "
                 "argument, is empty");
  CHECK_MENTIONS(text, here);
}

TEST_CASE("an integer in braces must fit its dtype") {
  CHECK_MENTIONS(message<rp::TypeError>([] {
                   return rp::array({1, 300}, rp::uint8);
                 }),
                 "array: an integer must fit its dtype, got 300 for uint8");
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::array({-1}, rp::uint32); }),
                 "got -1 for uint32");
  const std::string text = message<rp::TypeError>([] { return rp::array({1l << 40}); });
  CHECK_MENTIONS(text, "got 1099511627776 for int32");
  CHECK_MENTIONS(text, "hint: name a dtype that holds it, as in rp::array({...}, rp::int64)");
  CHECK_MENTIONS(text, here);
}

TEST_CASE("values that an update cuts to the array's dtype are warned about, once for each line") {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const Array i = rp::arange(3), u = rp::ones({2}, rp::uint8), b = rp::array({true, false});
  for (int k = 0; k < 3; ++k) i.at(0).set(0.5);
  const std::string text = said.str();
  i.at(0).add(0.5);
  u.at(0).set(Array(3).astype(rp::int32));
  b.at(0).set(1);
  const std::string all = said.str();
  i.at(0).set(true);
  u.at(0).set(300);
  rp::ones({2}).at(0).set(3);
  rp::ones({2}, rp::bfloat16).at(0).set(1.5);
  i.at(0).set(rp::array({3}, rp::int8)[0]);
  const std::string at_end = said.str();
  std::cerr.rdbuf(before);
  CHECK_MENTIONS(text,
                 "reprise: warning: at: values are cut to the dtype of the array, got f32 for i32");
  CHECK_MENTIONS(text, here);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK_MENTIONS(all, "got i32 for u8");
  CHECK_MENTIONS(all, "got i32 for bool");
  CHECK(at_end == all);  // where JAX is silent, so are we
}

TEST_CASE("grad says what the function must return and take") {
  const Array x = rp::ones({3});
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { return rp::grad([](Array v) { return rp::sin(v); })(x); }),
      "grad: the function must return a scalar, got f32[3]");
  CHECK_MENTIONS(message<rp::TypeError>(
                     [&] { return rp::grad([](Array v) { return rp::sum(v); })(rp::arange(3)); }),
                 "grad: the argument must be floating, got i32[3] (args[0])");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::grad([](Array v) { return std::pair{rp::sum(v), rp::sum(v)}; })(x);
                 }),
                 "grad: the function must return one scalar, got 2 outputs");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { return rp::grad([](Array v) { return rp::argmax(v); })(x); }),
      "grad: the function must return a floating scalar, got i32[]");
}

TEST_CASE("vjp, jvp and linearize check the types of cotangents and tangents") {
  const Array x = rp::ones({3});
  auto f = [](Array v) { return rp::sin(v); };
  const auto [y, back] = rp::vjp(f, x);
  const auto& pull = back;
  CHECK_MENTIONS(message<rp::TypeError>([&] { return pull(rp::ones({2})); }),
                 "vjp: the type must match the value it belongs to, got f32[2] for f32[3]");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { return rp::jvp(f, std::tuple{x}, std::tuple{rp::ones({2})}); }),
      "jvp: the type must match");
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::linearize(f, x).second(rp::ones({2})); }),
                 "linearize: the type must match");
}

TEST_CASE("while_loop has no reverse derivative and says what to use") {
  auto f = [](Array x) {
    return rp::while_loop([](Array v) { return v < 10.0; }, [](Array v) { return v * 2.0; }, x);
  };
  CHECK_MENTIONS(message<rp::RuleError>([&] { return rp::grad(f)(1.0); }),
                 "while_loop: reverse-mode differentiation needs a known number of steps");
}

TEST_CASE("loops check their carries") {
  auto grows = [](Array c, rp::None) { return std::pair{rp::concatenate({c, c}), rp::none}; };
  const std::string text = message<rp::TypeError>(
      [&] { return rp::scan(grows, rp::ones({2}), rp::none, {.length = 3}); });
  CHECK_MENTIONS(text,
                 "scan: the carry must keep its type, got f32[2] in and f32[4] out (carry leaf 0)");
  CHECK_MENTIONS(text, here);
  auto same = [](Array c, rp::None) { return std::pair{c, rp::none}; };
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::scan(same, 1.0, rp::none); }),
                 "scan: the number of steps is unknown");
  auto two = [](Array c, std::pair<Array, Array>) { return std::pair{c, rp::none}; };
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::scan(two, 1.0, std::pair{rp::ones({2}), rp::ones({3})});
                 }),
                 "scan: scanned arrays must have one leading size");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::while_loop([](Array v) { return v; }, [](Array v) { return v; }, 1.0);
                 }),
                 "while_loop: the condition must return a scalar bool, got f32[]");
  CHECK_MENTIONS(
      message<rp::TypeError>([] {
        return rp::parse_jaxpr(R"({ lambda ; a:bool[3] b:f32[2]. let
    _:bool[3] c:f32[2] = while[
      body_jaxpr={ lambda ; d:bool[3] e:f32[2]. let  in (d, e) }
      body_nconsts=0
      cond_jaxpr={ lambda ; f:bool[3] g:f32[2]. let  in (f,) }
      cond_nconsts=0
    ] a b
  in (c,) })");
      }),
      "while: a carry must have the dimensions of the condition in front, got f32[2] for bool[3]");
}

TEST_CASE("cond and switch_ check predicate and branches") {
  const Array x = rp::ones({3});
  auto same = [](Array v) { return v; };
  auto summed = [](Array v) { return rp::sum(v); };
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::cond(true, same, summed, x); }),
                 "cond: all branches must return the same types, got f32[] and f32[3]");
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::cond(x, same, same, x); }),
                 "cond: the predicate must be a scalar, got f32[3]");
  using Branch = std::function<Array(Array)>;
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::switch_(0, std::vector<Branch>{}, x); }),
                 "switch_: at least one branch is needed");
}

TEST_CASE("vmap checks axes and sizes") {
  auto f = [](Array a, Array b) { return a + b; };
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::vmap(f)(rp::ones({2}), rp::ones({3})); }),
                 "vmap: mapped axes must have one size, got 2 and 3");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::vmap(f, {.in_axes = {{std::nullopt, std::nullopt}}})(1.0, 2.0);
                 }),
                 "vmap: nothing is mapped");
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::vmap(f)(1.0, 2.0); }), "axis 0");
}

TEST_CASE("custom rules are checked") {
  auto plain = [](Array x) { return rp::sin(x); };
  auto bad_jvp = rp::custom_jvp(plain, [](std::tuple<Array> p, std::tuple<Array>) {
    return std::pair{rp::sin(std::get<0>(p)), rp::ones({7})};
  });
  CHECK_MENTIONS(message<rp::TypeError>([&] { return rp::grad(bad_jvp)(1.0); }),
                 "custom_jvp: the tangent of the rule must have the types of the function, got "
                 "f32[7] for f32[]");
  auto vjp = rp::custom_vjp(
      plain,
      [](Array x) {
        return std::pair{rp::sin(x), x};
      },
      [](Array x, Array ct) { return x * ct; });
  CHECK_MENTIONS(message<rp::TypeError>(
                     [&] { return rp::jvp(vjp, std::tuple{Array(1.0)}, std::tuple{Array(1.0)}); }),
                 "custom_vjp: forward-mode differentiation is not possible");
}

TEST_CASE("arrays from C++ values are checked") {
  CHECK_MENTIONS(message<rp::TypeError>([] {
                   return rp::array(std::vector<float>{1, 2, 3}, rp::Shape{2, 2});
                 }),
                 "array: the number of values must match the shape, got 3 values for shape (2, 2)");
  CHECK_MENTIONS(message<rp::TypeError>([] {
                   return rp::array({{1.0, 2.0}, {3.0}});
                 }),
                 "array: nested braces must be rectangular");
  CHECK_MENTIONS(message<rp::TypeError>([] { return Array(std::int64_t{1} << 40); }),
                 "array: an integer must fit the default dtype i32");
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::ones({2}).item<float>(); }),
                 "item: one element is needed, got f32[2]");
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::ones({2}).data<double>(); }),
                 "data: the element type must match, got f32[2] read as f64");
}

TEST_CASE("absurd sizes are errors, not crashes") {
  CHECK_MENTIONS(message<rp::RuntimeError>([] {
                   return rp::ones({std::int64_t{1} << 40, std::int64_t{1} << 40});
                 }),
                 "too many elements");
  CHECK_MENTIONS(message<rp::RuntimeError>([] { return rp::ones({std::int64_t{1} << 50}); }),
                 "memory");
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::ones({-1}); }), "negative");
}

TEST_CASE("sizes never wrap") {
  const std::int64_t big = std::int64_t{1} << 50;
  const Array wide = rp::zeros({big, 0});
  CHECK_MENTIONS(message<rp::RuntimeError>([&] {
                   return rp::concatenate({wide, wide, wide, wide, wide}, 0);
                 }),
                 "shape: too many elements, got (5629499534213120, 0)");
  // An empty array has limits too: strides are products of its other dimensions.
  CHECK_MENTIONS(message<rp::RuntimeError>([&] {
                   return rp::zeros({0, big, big});
                 }),
                 "too many elements");
  CHECK_MENTIONS(message<rp::RuntimeError>([&] {
                   return rp::broadcast_to(rp::zeros({1}), {big, big});
                 }),
                 "too many elements");
  CHECK_MENTIONS(message<rp::RuntimeError>([&] {
                   return rp::lax::tile(wide, {64, 1});
                 }),
                 "too many elements");
  CHECK_MENTIONS(message<rp::RuntimeError>([&] {
                   return rp::make_jaxpr([](Array x) { return rp::outer(x, x); })(
                       rp::zeros({std::int64_t{1} << 30}));
                 }),
                 "too many elements");
  // Values that would fit one by one, but not together.
  const auto f = [&](Array x) {
    Array y = x;
    for (int i = 0; i < 40; ++i) y = rp::sin(rp::broadcast_to(y, {big})) + x;
    return rp::sum(y);
  };
  CHECK_MENTIONS(
      message<rp::RuntimeError>([&] { return rp::jit(f).lower(rp::ones({1})).compile(); }),
      "larger than any memory");
}

TEST_CASE("positions fit their dtype") {
  const std::int64_t many = 2'500'000'000;
  const auto of_many = [&](const auto& f) {
    return rp::make_jaxpr([&](Array x) { return f(rp::broadcast_to(x, {many})); })(
               rp::zeros({1}, rp::uint8))
        .out_types()[0];
  };
  CHECK(of_many([](Array x) { return rp::argmax(x); }).dtype == rp::int64);
  CHECK(of_many([](Array x) { return rp::argmin(x, 0); }).dtype == rp::int64);
  CHECK(of_many([](Array x) { return rp::argsort(x); }).dtype == rp::int64);
  CHECK(of_many([](Array x) { return rp::cumsum(x > 0); }).dtype == rp::int64);
  CHECK(of_many([](Array x) { return rp::sum(x > 0); }).dtype == rp::int64);
  CHECK(rp::argmax(rp::ones({3})).dtype() == rp::int32);
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return of_many([](Array x) { return rp::lax::argmax(x, 0, rp::int32); });
                 }),
                 "argmax: positions must fit index_dtype, got i32 for axis 0 of u8[2500000000]");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { return rp::lax::argmax(rp::ones({200}), 0, rp::int8); }),
      "positions must fit index_dtype");
  CHECK_MENTIONS(message<rp::TypeError>(
                     [&] { return of_many([](Array x) { return rp::top_k(x, 2).second; }); }),
                 "top_k: i32 indices would overflow");
  // A label of one byte is no class above 255.
  const Array hot = rp::nn::one_hot(rp::array({5}).astype(rp::uint8), 300);
  CHECK(rp::sum(hot).item<float>() == 1);
}

namespace {

// How deep functions may stand, and how deep never. The frames of sanitized code are several times
// as large, also those that destroy the functions.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_LARGE_FRAMES
#endif
#endif
#ifdef REPRISE_LARGE_FRAMES
constexpr int deep = 100, too_many = 2000;
#else
constexpr int deep = 1000, too_many = 10000;
#endif

// sin inside so many functions.
template <class Wrap>
std::function<Array(Array)> nested(int levels, const Wrap& wrap) {
  std::function<Array(Array)> f = [](Array x) { return rp::sin(x); };
  for (int i = 0; i < levels; ++i) {
    f = [g = std::make_shared<decltype(wrap(f))>(wrap(f))](Array x) { return (*g)(x)*1.0; };
  }
  return f;
}

}  // namespace

TEST_CASE("functions nested beyond the stack are an error") {
  using Function = std::function<Array(Array)>;
  const auto jit = [](const Function& f) { return rp::jit(f); };
  const auto checkpoint = [](const Function& f) { return rp::checkpoint(f); };
  const auto cond = [](const Function& f) {
    return [f](Array x) { return rp::cond(x > 0.0, f, f, x); };
  };
  const std::string too_deep = "functions are nested too deeply";
  CHECK(nested(deep, jit)(1.0).item<float>() == doctest::Approx(std::sin(1.0)));
  CHECK_MENTIONS(message<rp::RuntimeError>([&] { return nested(too_many, jit)(1.0); }),
                 "jit: " + too_deep);
  CHECK_MENTIONS(
      message<rp::RuntimeError>([&] { return rp::grad(nested(too_many, checkpoint))(1.0); }),
      too_deep);
  CHECK_MENTIONS(message<rp::RuntimeError>([&] { return rp::jit(nested(too_many, cond))(1.0); }),
                 too_deep);
  CHECK_MENTIONS(
      message<rp::RuntimeError>([&] { return rp::make_jaxpr(nested(too_many, jit))(1.0); }),
      too_deep);
}

TEST_CASE("a missing entry of a Dict names the keys there are") {
  rp::Dict d;
  d["w"] = rp::ones({2});
  d["b"] = rp::ones({2});
  const rp::Dict& view = d;
  CHECK_MENTIONS(message<rp::TypeError>([&] { return view["v"]; }),
                 "dict: no such key, got 'v' where the keys are 'b', 'w'");
}

TEST_CASE("the line of an operation inside the standard library is that of the transform's call") {
  const std::function<Array(rp::Operand)> f = [](rp::Operand x) {
    return rp::lax::add(x, rp::ones({3}));
  };
  auto g = rp::jit([f](Array x) { return f(x); });
  const std::string text = message<rp::TypeError>([&] { return g(rp::ones({2})); });
  CHECK_MENTIONS(text, here);
}
