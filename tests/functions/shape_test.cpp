#include "ops/mapped_axes.h"
#include "reprise/ops.h"
#include "reprise/program.h"

#include <doctest/doctest.h>

#include <numeric>

namespace reprise {
namespace {

std::string program_of(const FlatFunction& f, const Types& types) {
  Arrays args;
  for (const Type& t : types) args.push_back(zeros(t.shape, t.dtype));
  return make_jaxpr([&](Arrays a) { return f(a); })(args).str();
}
const Type row{float32, {3}}, matrix{float32, {4, 5}};

TEST_CASE("reshape finds the open dimension") {
  const Array x = counting({2, 6});
  CHECK(x.reshape({3, -1}).shape() == Shape{3, 4});
  CHECK(reshape(x, {-1}).shape() == Shape{12});
  CHECK(reshape(3.0, {1, -1}).shape() == Shape{1, 1});
  CHECK(ravel(counting({2, 0})).shape() == Shape{0});
  CHECK(
      error_of<TypeError>([&] {
        x.reshape({5, -1});
      })
          .starts_with("reshape: the open dimension -1 cannot be found, got f64[2,6] for the shape "
                       "(5, -1)\n  at "));
  CHECK_THROWS_AS(x.reshape({-1, -1}), TypeError);
  CHECK_THROWS_AS(x.reshape({-1, 0}), TypeError);
  CHECK_THROWS_AS(x.reshape({-1, -3}), TypeError);
  CHECK_THROWS_AS(x.reshape({7}), TypeError);
}

TEST_CASE("transpose, swapaxes and moveaxis permute dimensions") {
  const Array x = counting({2, 3, 4});
  CHECK(transpose(x).shape() == Shape{4, 3, 2});
  CHECK(T(x).shape() == Shape{4, 3, 2});
  CHECK(transpose(x, Shape{1, -1, 0}).shape() == Shape{3, 4, 2});
  CHECK(swapaxes(x, 0, -1).shape() == Shape{4, 3, 2});
  CHECK(moveaxis(x, 0, -1).shape() == Shape{3, 4, 2});
  CHECK(moveaxis(x, {0, 1}, {-1, 0}).shape() == Shape{3, 4, 2});
  check_numbers(T(counting({2, 3})), {0, 3, 1, 4, 2, 5});
  CHECK_THROWS_AS(transpose(x, Shape{0, 1}), TypeError);
  CHECK_THROWS_AS(transpose(x, Shape{0, 1, 1}), TypeError);
  CHECK_THROWS_AS(swapaxes(x, 0, 3), TypeError);
  CHECK_THROWS_AS(moveaxis(x, {0, 0}, {0, 1}), TypeError);
  CHECK_THROWS_AS(moveaxis(x, {0}, {0, 1}), TypeError);
}

TEST_CASE("dimensions of size 1 come and go") {
  const Array x = counting({1, 3, 1});
  CHECK(squeeze(x).shape() == Shape{3});
  CHECK(squeeze(x, -1).shape() == Shape{1, 3});
  CHECK(squeeze(x, {0, 2}).shape() == Shape{3});
  CHECK(expand_dims(x, -1).shape() == Shape{1, 3, 1, 1});
  CHECK(expand_dims(counting({3}), {0, 2}).shape() == Shape{1, 3, 1});
  CHECK(atleast_1d(2.0).shape() == Shape{1});
  CHECK(atleast_2d(counting({3})).shape() == Shape{1, 3});
  CHECK_THROWS_AS(squeeze(x, 1), TypeError);
}

TEST_CASE("broadcast_to repeats as numpy does") {
  check_numbers(broadcast_to(counting({2, 1}), {2, 2, 3}), {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  check_numbers(broadcast_to(1.5, {2}), {1.5, 1.5});
  CHECK_THROWS_AS(broadcast_to(counting({2}), {3}), TypeError);
  CHECK_THROWS_AS(broadcast_to(counting({2, 3}), {3}), TypeError);
}

TEST_CASE("concatenate and stack promote dtypes") {
  const Array mixed = concatenate({array({1, 2}), array({0.5})});
  CHECK(mixed.dtype() == float32);
  check_numbers(mixed, {1, 2, 0.5});
  check_numbers(stack({array({1, 2}), array({0.5, 1.5})}, -1), {1, 0.5, 2, 1.5});
  check_numbers(concatenate({counting({2, 1}), counting({2, 2})}, -1), {0, 0, 1, 1, 2, 3});
  check_numbers(vstack({array({1, 2}), array({3, 4})}), {1, 2, 3, 4});
  CHECK(vstack({array({1, 2}), array({{3, 4}, {5, 6}})}).shape() == Shape{3, 2});
  check_numbers(hstack({array(1), array({2, 3})}), {1, 2, 3});
  CHECK(hstack({counting({2, 1}), counting({2, 3})}).shape() == Shape{2, 4});
  CHECK_THROWS_AS(concatenate({}), TypeError);
  CHECK_THROWS_AS(concatenate({array(1), array(2)}), TypeError);
  CHECK_THROWS_AS(stack({}), TypeError);
  CHECK_THROWS_AS(hstack({}), TypeError);
}

TEST_CASE("split cuts into equal parts or at positions") {
  const Array x = counting({6});
  const Arrays halves = split(x, 2), at_two = split(x, {2}), parts = split(x, {1, 4});
  REQUIRE(halves.size() == 2);
  check_numbers(halves[1], {3, 4, 5});
  REQUIRE(at_two.size() == 2);
  check_numbers(at_two[0], {0, 1});
  REQUIRE(parts.size() == 3);
  check_numbers(parts[1], {1, 2, 3});
  CHECK(split(counting({2, 6}), 3, -1)[0].shape() == Shape{2, 2});
  CHECK_THROWS_AS(split(x, 4), TypeError);
  CHECK_THROWS_AS(split(x, 0), TypeError);
  CHECK_THROWS_AS(split(x, {4, 1}), TypeError);
  CHECK_THROWS_AS(split(x, {7}), TypeError);
  CHECK_THROWS_AS(split(x, 2, 1), TypeError);
  CHECK(unstack(counting({3, 2})).size() == 3);
}

TEST_CASE("repeat and tile make copies") {
  check_numbers(repeat(array({1, 2}), 3), {1, 1, 1, 2, 2, 2});
  check_numbers(repeat(counting({2, 2}), 2, 1), {0, 0, 1, 1, 2, 2, 3, 3});
  check_numbers(repeat(counting({2, 2}), 2, 0), {0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(repeat(7, 2).shape() == Shape{2});
  CHECK(repeat(array({1, 2}), 0).shape() == Shape{0});
  check_numbers(tile(array({1, 2}), 2), {1, 2, 1, 2});
  check_numbers(tile(array({1, 2}), {2, 2}), {1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(tile(counting({2, 3}), 2).shape() == Shape{2, 6});
  CHECK_THROWS_AS(repeat(array({1}), -1), TypeError);
  CHECK_THROWS_AS(repeat(array({1}), 2, 1), TypeError);
  CHECK_THROWS_AS(tile(array({1}), -2), TypeError);
}

TEST_CASE("flip and roll turn around") {
  check_numbers(flip(counting({2, 3})), {5, 4, 3, 2, 1, 0});
  check_numbers(flip(counting({2, 3}), 1), {2, 1, 0, 5, 4, 3});
  check_numbers(flip(counting({2, 3}), {0}), {3, 4, 5, 0, 1, 2});
  const Array x = counting({5});
  for (int shift = -11; shift <= 11; ++shift) {
    std::vector<double> expected(5);
    for (int i = 0; i < 5; ++i) expected[static_cast<std::size_t>(((i + shift) % 5 + 5) % 5)] = i;
    check_numbers(roll(x, shift), expected);
  }
  check_numbers(roll(counting({2, 3}), 1), {5, 0, 1, 2, 3, 4});
  check_numbers(roll(counting({2, 3}), 1, 1), {2, 0, 1, 5, 3, 4});
  check_numbers(roll(counting({2, 3}), {1, -1}, {0, 1}), {4, 5, 3, 1, 2, 0});
  CHECK(roll(counting({0, 3}), 1, 0).shape() == Shape{0, 3});
  check_numbers(roll(x, INT64_MIN), roll(x, INT64_MIN % 5).to_vector<double>());
  CHECK_THROWS_AS(flip(x, 1), TypeError);
  CHECK_THROWS_AS(roll(x, {1, 2}, {0}), TypeError);
}

TEST_CASE("pad makes a border") {
  check_numbers(pad(array({1, 2}), 1), {0, 1, 2, 0});
  check_numbers(pad(array({1.0, 2.0}), {{0, 2}}, 9), {1, 2, 9, 9});
  check_numbers(pad(counting({1, 2}), {{1, 0}, {0, 1}}, -1.0), {-1, -1, -1, 0, 1, -1});
  check_numbers(pad(counting({1, 2}), {{0, 1}}), {0, 1, 0, 0, 0, 0});
  CHECK(pad(array({1, 2}), 1, 2.5).dtype() == int32);
  CHECK_THROWS_AS(pad(array({1}), -1), TypeError);
  CHECK_THROWS_AS(pad(counting({1, 2, 3}), {{0, 1}, {1, 0}}), TypeError);
}

TEST_CASE("shape functions record what jax.numpy records") {
  CHECK(program_of([](const Arrays& a) { return Arrays{pad(a[0], 1)}; }, {row}) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[5] = jit[\n"
        "      name=_pad\n"
        "      jaxpr={ lambda ; a:f32[3] c:i32[]. let\n"
        "          d:f32[] = convert_element_type[new_dtype=float32 weak_type=False] c\n"
        "          b:f32[5] = pad[padding_config=((1, 1, 0),)] a d\n"
        "        in (b,) }\n"
        "    ] a 0:i32[]\n"
        "  in (b,) }");
  CHECK(program_of([](const Arrays& a) { return Arrays{flip(a[0], -1)}; }, {matrix}) ==
        "{ lambda ; a:f32[4,5]. let\n"
        "    b:f32[4,5] = jit[\n"
        "      name=_flip\n"
        "      jaxpr={ lambda ; a:f32[4,5]. let\n"
        "          b:f32[4,5] = rev[dimensions=(1,)] a\n"
        "        in (b,) }\n"
        "    ] a\n"
        "  in (b,) }");
  CHECK(program_of([](const Arrays& a) { return Arrays{repeat(a[0], 3)}; }, {matrix}) ==
        "{ lambda ; a:f32[4,5]. let\n"
        "    b:f32[20] = reshape[dimensions=None new_sizes=(20,) sharding=None] a\n"
        "    c:f32[20,3] = broadcast_in_dim[broadcast_dimensions=(0,)] b\n"
        "    d:f32[60] = reshape[dimensions=None new_sizes=(60,) sharding=None] c\n"
        "  in (d,) }");
  CHECK(program_of(
            [](const Arrays& a) {
              return Arrays{hstack({a[0], a[0]})};
            },
            {row}) ==
        "let atleast_1d = { lambda ; a:f32[3]. let  in (a,) } in\n"
        "{ lambda ; b:f32[3]. let\n"
        "    c:f32[3] = jit[name=atleast_1d jaxpr=atleast_1d] b\n"
        "    d:f32[3] = jit[name=atleast_1d jaxpr=atleast_1d] b\n"
        "    e:f32[6] = concatenate[dimension=0] c d\n"
        "  in (e,) }");
  CHECK(program_of(
            [](const Arrays& a) {
              return Arrays{tile(a[0], {2, 3})};
            },
            {row}) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] a\n"
        "    c:f32[2,9] = tile[reps=(2, 3)] b\n"
        "  in (c,) }");
}

TEST_CASE("shape functions differentiate and map") {
  const FlatFunction f = [](const Arrays& a) {
    const Array padded = pad(a[0], 1, 2.0);
    const Array rolled = roll(padded, 2, 0);
    const Array doubled = repeat(rolled, 2, 1);
    return Arrays{concatenate({flip(doubled), tile(doubled, {1, 2})}, 1)};
  };
  check_derivatives(f, {counting({2, 3})});
  check_mapped(f, {counting({3, 2, 3})}, {1});
}

}  // namespace
}  // namespace reprise
