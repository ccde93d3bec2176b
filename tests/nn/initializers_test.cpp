#include "reprise/initializers.h"

#include "nn/layer_case.h"

#include <string>

namespace reprise {
namespace {

namespace init = nn::initializers;
using flax_golden::near;
using flax_golden::same_bits;
using flax_golden::section;

const Array key42 = random::PRNGKey(42);

void check_golden(const std::string& name, const init::Initializer& initializer,
                  bool exact = true) {
  INFO(name);
  for (const auto& item : section("initializers_key42")[name].items()) {
    INFO(item.key());
    const auto& wanted = item.value();
    const Array ours = initializer(key42, wanted["shape"].get<Shape>());
    if (exact) {
      same_bits(ours, wanted);
    } else {
      near(ours, wanted, 2e-6);
    }
  }
}

std::string error_of(const init::Initializer& initializer, const Shape& shape) {
  return ::error_of<TypeError>([&] { initializer(key42, shape); });
}

TEST_CASE("initializers give the bits of jax.nn.initializers") {
  check_golden("lecun_normal", init::lecun_normal());
  check_golden("lecun_uniform", init::lecun_uniform());
  check_golden("he_normal", init::he_normal());
  check_golden("he_uniform", init::he_uniform());
  check_golden("he_normal", init::kaiming_normal());
  check_golden("he_uniform", init::kaiming_uniform());
  check_golden("glorot_normal", init::glorot_normal());
  check_golden("glorot_uniform", init::glorot_uniform());
  check_golden("glorot_normal", init::xavier_normal());
  check_golden("glorot_uniform", init::xavier_uniform());
  check_golden("normal(0.01)", init::normal());
  check_golden("uniform(0.01)", init::uniform(0.01));
  check_golden("truncated_normal(0.01)", init::truncated_normal(0.01));
  check_golden("variance_scaling(1,fan_in,normal,out_axis=0)",
               init::variance_scaling(1.0, "fan_in", "normal", {.out_axis = 0}));
  check_golden("variance_scaling(2,fan_geo_avg,truncated_normal)",
               init::variance_scaling(2.0, "fan_geo_avg", "truncated_normal"));
}

TEST_CASE("orthogonal agrees with the matrices of LAPACK to rounding") {
  check_golden("orthogonal", init::orthogonal(), /*exact=*/false);
}

TEST_CASE("orthogonal has orthonormal columns, or rows when these are fewer") {
  const Array tall = init::orthogonal()(key42, {40, 12});
  const Array wide = init::orthogonal(2.0)(key42, {3, 4, 30});
  const Array first = init::orthogonal(1.0, 0)(key42, {5, 4, 6});
  const Array rows = reshape(first, {5, 24});
  const Array flat = reshape(wide, {12, 30}) / 2.0;
  CHECK(max(abs(dot(T(tall), tall) - eye(12))).item<float>() < 2e-6f);
  CHECK(max(abs(dot(flat, T(flat)) - eye(12))).item<float>() < 2e-6f);
  CHECK(max(abs(dot(rows, T(rows)) - eye(5))).item<float>() < 2e-6f);
  CHECK(init::orthogonal()(key42, {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("delta_orthogonal puts an orthogonal matrix at the centre of the window") {
  const Array kernel = init::delta_orthogonal()(key42, {3, 4, 2, 5});
  const Array centre = kernel(1, 1);
  CHECK(to_string(centre) == to_string(init::orthogonal()(key42, {2, 5})));
  CHECK(sum(abs(kernel)).item<float>() == doctest::Approx(sum(abs(centre)).item<float>()));
  CHECK(init::delta_orthogonal()(key42, {3, 2, 2}).shape() == Shape{3, 2, 2});
}

TEST_CASE("constant initializers ignore the key") {
  CHECK(to_string(init::zeros(key42, {2})) == to_string(zeros({2})));
  CHECK(init::ones(key42, {2}, bfloat16).type() == Type{bfloat16, {2}});
  CHECK(init::zeros_init()(key42, {3}).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(init::ones_init()(key42, {2}).to_vector<float>() == std::vector<float>{1, 1});
  CHECK(init::constant(-7)(key42, {2}, int32).to_vector<int>() == std::vector<int>{-7, -7});
  CHECK(init::constant(array({1.0, 2.0}))(key42, {2, 2}).to_vector<float>() ==
        std::vector<float>{1, 2, 1, 2});
}

TEST_CASE("fans count the named axes, and leave batch axes out") {
  // Three kernels of 4 x 5: the variance is that of one kernel.
  const Array draw = random::truncated_normal(key42, -2, 2, {{3, 4, 5}});
  const Array batched = init::lecun_normal({.batch_axis = 0})(key42, {3, 4, 5});
  CHECK((max(abs(batched / draw)) * 0.87962566f).item<float>() == doctest::Approx(0.5f));
  // Inputs over two axes: 3 * 4.
  const Array general = init::lecun_normal({.in_axis = {0, 1}})(key42, {3, 4, 5});
  CHECK((max(abs(general / draw)) * 0.87962566f).item<float>() ==
        doctest::Approx(std::sqrt(1 / 12.0)));
  // The default counts the leading axis as a window: the same number here.
  CHECK(to_string(init::lecun_normal()(key42, {3, 4, 5})) == to_string(general));
  const Array by_out = init::variance_scaling(1.0, "fan_out", "truncated_normal")(key42, {3, 4, 5});
  CHECK((max(abs(by_out / draw)) * 0.87962566f).item<float>() ==
        doctest::Approx(std::sqrt(1 / 15.0)));
}

TEST_CASE("initializers compute in the dtype of the parameter") {
  const Array kernel = init::lecun_normal()(key42, {64, 3}, bfloat16);
  CHECK(kernel.dtype() == bfloat16);
  // Variance 1/64, its root and the quotient are rounded to bf16 one by one.
  const Array draw = random::truncated_normal(key42, -2, 2, {{64, 3}}, bfloat16);
  CHECK(to_string(kernel) == to_string(draw * full({}, 0.142578125, bfloat16)));
  CHECK(init::he_uniform({}, float64)(key42, {2, 2}).dtype() == float64);
  CHECK(init::he_uniform({}, float64)(key42, {2, 2}, float16).dtype() == float16);
}

TEST_CASE("initializers give the same numbers inside jit and vmap") {
  const init::Initializer lecun = init::lecun_normal();
  auto draw = [&](Array key) { return lecun(key, {7, 5}); };
  CHECK(to_string(jit(draw)(key42)) == to_string(draw(key42)));
  const Array keys = random::split(random::key(3), 2);
  CHECK(to_string(vmap(draw)(keys)[1]) == to_string(draw(keys[1])));
  auto orthogonal = [](Array key) { return init::orthogonal()(key, {6, 4}); };
  CHECK(max(abs(jit(orthogonal)(key42) - orthogonal(key42))).item<float>() < 1e-6f);
}

TEST_CASE("any function of key, shape and dtype is an initializer") {
  const init::Initializer mine = [](Array, Shape shape, Dtype dtype) {
    return full(shape, 3, dtype);
  };
  CHECK(mine(key42, {2}).to_vector<float>() == std::vector<float>{3, 3});
  const nn::Initializer from_function = init::ones;
  CHECK(from_function(key42, {1}).item<float>() == 1);
}

TEST_CASE("initializers reject what they cannot fill, and name the line") {
  const std::string too_flat = error_of(init::lecun_normal(), {4});
  CHECK(begins(too_flat,
               "variance_scaling: the default in_axis -2 needs a kernel with at least 2 "
               "dimensions, got 1\n  at initializers_test.cpp:"));
  CHECK(too_flat.find("hint: set .in_axis") != std::string::npos);
  CHECK(begins(
      error_of(init::variance_scaling(1.0, "fan", "normal"), {2, 2}),
      "variance_scaling: the mode must be fan_in, fan_out, fan_avg or fan_geo_avg, got 'fan'"));
  CHECK(
      begins(error_of(init::variance_scaling(1.0, "fan_in", "gauss"), {2, 2}),
             "variance_scaling: the distribution must be truncated_normal, normal or uniform, got "
             "'gauss'"));
  CHECK(begins(error_of(init::lecun_normal({.in_axis = 2}), {2, 2}),
               "variance_scaling: axis 2 is out of range for a shape with 2 dimensions"));
  CHECK(begins(error_of(init::lecun_normal({}, int32), {2, 2}),
               "variance_scaling: the dtype must be floating, got i32"));
  CHECK(begins(error_of(init::orthogonal(), {2}),
               "orthogonal: needs a shape with at least 2 dimensions, got 1"));
  CHECK(begins(error_of(init::orthogonal(1.0, 2), {2, 2}), "orthogonal: axis 2 is out of range"));
  CHECK(begins(error_of(init::delta_orthogonal(), {2, 2}),
               "delta_orthogonal: needs a shape with 3, 4 or 5 dimensions, got 2"));
  CHECK(begins(
      error_of(init::delta_orthogonal(), {3, 4, 2}),
      "delta_orthogonal: the last dimension must be at least as large as the one before, got 2 "
      "and 4"));
}

}  // namespace
}  // namespace reprise
