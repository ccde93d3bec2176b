// Convolutions inside compiled programs: the library's against the plain evaluator's.
#include "runtime/difference.h"
#include "runtime/threads.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;
using rp::lax::ConvOptions;

namespace {

struct Case {
  const char* what;
  rp::Shape image, kernel;
  ConvOptions options;
};

std::vector<Case> cases() {
  const auto last = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const auto line = rp::lax::conv_dimension_numbers("NWC", "WIO", "NWC");
  return {
      {"same padding",
       {2, 9, 11, 16},
       {3, 3, 16, 24},
       {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last}},
      {"strides",
       {3, 12, 10, 8},
       {3, 2, 8, 16},
       {.window_strides = {2, 3}, .dimension_numbers = last}},
      {"features first", {2, 3, 13, 9}, {8, 3, 3, 3}, {.padding = {{0, 2}, {1, 0}}}},
      {"window dilation",
       {2, 15, 14, 4},
       {3, 3, 4, 5},
       {.rhs_dilation = {2, 3}, .dimension_numbers = last}},
      {"one channel", {1, 28, 28, 1}, {5, 5, 1, 6}, {.dimension_numbers = last}},
      {"groups",
       {2, 8, 8, 12},
       {3, 3, 3, 8},
       {.dimension_numbers = last, .feature_group_count = 4}},
      {"depthwise",
       {2, 8, 8, 12},
       {3, 3, 1, 12},
       {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last, .feature_group_count = 12}},
      {"holes in the image",
       {2, 7, 6, 4},
       {3, 3, 4, 4},
       {.padding = {{2, 2}, {2, 2}}, .lhs_dilation = {2, 2}, .dimension_numbers = last}},
      {"a line",
       {4, 33, 8},
       {4, 8, 8},
       {.window_strides = {2}, .padding = {{3, 0}}, .dimension_numbers = line}},
      {"an image cut off",
       {2, 9, 9, 4},
       {2, 2, 4, 4},
       {.padding = {{-1, 0}, {0, -2}}, .dimension_numbers = last}},
  };
}

Arrays value_and_gradients(const Case& c, const Array& image, const Array& kernel, bool compiled) {
  const auto loss = [&c](Array x, Array k) {
    return rp::sum(rp::sin(rp::lax::conv_general_dilated(x, k, c.options)));
  };
  const auto step = rp::value_and_grad<0, 1>(loss);
  return rp::tree_leaves(compiled ? rp::jit(step)(image, kernel) : step(image, kernel));
}

Array normal(int seed, const rp::Shape& shape, rp::Dtype dtype = rp::float32) {
  return rp::random::normal(rp::random::key(seed), shape, dtype);
}

}  // namespace

TEST_CASE("compiled convolutions and their gradients are those of the evaluator") {
  for (const Case& c : cases()) {
    INFO(std::string(c.what));
    const Array image = normal(1, c.image), kernel = normal(2, c.kernel);
    const Arrays expected = value_and_gradients(c, image, kernel, false);
    const Arrays got = value_and_gradients(c, image, kernel, true);
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(largest_difference(got[k], expected[k]) <= 2e-5);
  }
}

TEST_CASE("common convolutions run in the library, gradients included") {
  const auto c = cases()[0];
  const auto loss = [&c](Array x, Array k) {
    return rp::sum(rp::sin(rp::lax::conv_general_dilated(x, k, c.options)));
  };
  const std::string text = rp::jit(rp::value_and_grad<0, 1>(loss))
                               .lower(normal(1, c.image), normal(2, c.kernel))
                               .compile()
                               .as_text();
  CHECK(text.find("evaluate conv") == std::string::npos);
  std::size_t calls = 0;
  for (std::size_t at = text.find("convolution"); at != std::string::npos;
       at = text.find("convolution", at + 1))
    ++calls;
  CHECK(calls == 3);
}

// What one rounding of the result, and of a gradient on its way, may change.
double tolerance(rp::Dtype dtype) {
  if (dtype == rp::float64) return 1e-13;
  return dtype == rp::float32 ? 2e-5 : dtype == rp::float16 ? 4e-3 : 3e-2;
}

TEST_CASE(
    "convolutions of other dtypes and their gradients are those of the evaluator, and compiled") {
  for (rp::Dtype dtype : {rp::float64, rp::float16, rp::bfloat16}) {
    for (const Case& c : cases()) {
      INFO(std::string(c.what), " ", std::string(rp::short_name(dtype)));
      const Array image = normal(1, c.image).astype(dtype),
                  kernel = normal(2, c.kernel).astype(dtype);
      const Arrays expected = value_and_gradients(c, image, kernel, false);
      const Arrays got = value_and_gradients(c, image, kernel, true);
      for (std::size_t k = 0; k < got.size(); ++k) {
        CHECK(got[k].dtype() == dtype);
        CHECK(largest_difference(got[k], expected[k]) <= tolerance(dtype));
      }
      const auto loss = [&c](Array x, Array k) {
        return rp::sum(rp::sin(rp::lax::conv_general_dilated(x, k, c.options)));
      };
      const std::string text =
          rp::jit(rp::value_and_grad<0, 1>(loss)).lower(image, kernel).compile().as_text();
      CHECK(text.find("evaluate") == std::string::npos);
    }
  }
}

TEST_CASE("a convolution of f16 or bf16 is that of f32, rounded once") {
  const auto conv = rp::jit([](Array a, Array b) {
    return rp::lax::conv_general_dilated(a, b, {.padding = {{1, 1}, {1, 1}}});
  });
  for (rp::Dtype dtype : {rp::float16, rp::bfloat16}) {
    const Array x = normal(1, {2, 96, 9, 7}).astype(dtype),
                k = normal(2, {5, 96, 3, 3}).astype(dtype);
    const Array wide = conv(x.astype(rp::float32), k.astype(rp::float32));
    CHECK(conv(x, k).to_vector<float>() == wide.astype(dtype).to_vector<float>());
    const auto wider = [](Array a, Array b) {
      return rp::lax::conv_general_dilated(
          a, b, {.padding = {{1, 1}, {1, 1}}, .preferred_element_type = rp::float32});
    };
    CHECK(rp::jit(wider)(x, k).to_vector<float>() == wide.to_vector<float>());
  }
}

TEST_CASE("convolutions of integers wrap as the evaluator's do") {
  for (rp::Dtype dtype : {rp::int8, rp::uint8, rp::int16, rp::int32, rp::uint32, rp::int64}) {
    const Array x = (100.f * normal(1, {2, 3, 8, 7})).astype(rp::int32).astype(dtype),
                k = (100.f * normal(2, {4, 3, 3, 3})).astype(rp::int32).astype(dtype);
    for (const std::optional<rp::Dtype> preferred :
         {std::optional<rp::Dtype>(), std::optional(rp::int64)}) {
      if (preferred && (dtype == rp::uint8 || dtype == rp::uint32)) continue;
      const auto conv = [preferred](Array a, Array b) {
        return rp::lax::conv_general_dilated(a, b,
                                             {.window_strides = {2, 1},
                                              .padding = {{1, 1}, {0, 2}},
                                              .preferred_element_type = preferred});
      };
      CHECK(rp::jit(conv)(x, k).to_vector<std::int64_t>() == conv(x, k).to_vector<std::int64_t>());
      CHECK(rp::jit(conv).lower(x, k).compile().as_text().find("evaluate") == std::string::npos);
    }
  }
}

TEST_CASE("empty sums and empty results of every dtype") {
  for (rp::Dtype dtype : {rp::float64, rp::float32, rp::float16, rp::int32}) {
    for (const auto& [image, kernel] : {std::pair(rp::Shape{2, 0, 5, 5}, rp::Shape{4, 0, 3, 3}),
                                        std::pair(rp::Shape{0, 3, 5, 5}, rp::Shape{4, 3, 3, 3}),
                                        std::pair(rp::Shape{2, 3, 2, 5}, rp::Shape{4, 3, 3, 3}),
                                        std::pair(rp::Shape{2, 3, 5, 5}, rp::Shape{4, 3, 0, 3})}) {
      const Array x = rp::ones(image, dtype), k = rp::ones(kernel, dtype);
      const auto conv = [](Array a, Array b) { return rp::lax::conv_general_dilated(a, b, {}); };
      const Array got = rp::jit(conv)(x, k), expected = conv(x, k);
      CHECK(got.type() == expected.type());
      CHECK(got.to_vector<double>() == expected.to_vector<double>());
    }
  }
}

TEST_CASE("what the library refuses becomes products, very many of them a loop") {
  const Array x = normal(1, {2, 3, 40, 9}), k = normal(2, {4, 3, 3, 3});
  const ConvOptions both{
      .window_strides = {2, 2}, .padding = {{1, 0}, {0, 1}}, .lhs_dilation = {3, 2}};
  const auto conv = [both](Array a, Array b) { return rp::lax::conv_general_dilated(a, b, both); };
  CHECK(largest_difference(rp::jit(conv)(x, k), conv(x, k)) <= 2e-5);
  CHECK(rp::jit(conv).lower(x, k).compile().as_text().find("evaluate") == std::string::npos);
  const Array large = normal(3, {1, 1, 40, 40}).astype(rp::float64),
              window = normal(4, {1, 1, 20, 20}).astype(rp::float64);
  const auto wide = [](Array a, Array b) { return rp::lax::conv_general_dilated(a, b, {}); };
  CHECK(largest_difference(rp::jit(wide)(large, window), wide(large, window)) <= 1e-13);
  CHECK(rp::jit(wide).lower(large, window).compile().as_text().find("evaluate") ==
        std::string::npos);
}

TEST_CASE(
    "products of a convolution take no more than a few copies of its operands and its result") {
  const auto last = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const auto conv = rp::jit([last](Array a, Array b) {
    return rp::lax::conv_general_dilated(a, b,
                                         {.padding = {{2, 2}, {2, 2}}, .dimension_numbers = last});
  });
  const Array x = normal(1, {4, 32, 32, 16}).astype(rp::float64),
              k = normal(2, {5, 5, 16, 16}).astype(rp::float64);
  const auto memory = conv.lower(x, k).compile().memory_analysis();
  CHECK(memory.peak_bytes <= 5 * x.nbytes());
}

TEST_CASE("a convolution's bits do not depend on the number of threads") {
  const int before = rp::num_threads();
  for (const Case& c : cases()) {
    INFO(std::string(c.what));
    const Array image = normal(1, c.image), kernel = normal(2, c.kernel);
    for (rp::Dtype dtype : {rp::float32, rp::float64, rp::bfloat16}) {
      std::vector<std::vector<double>> first;
      for (int threads : {1, 2, 5}) {
        rp::set_num_threads(threads);
        std::vector<std::vector<double>> now;
        for (const Array& a :
             value_and_gradients(c, image.astype(dtype), kernel.astype(dtype), true))
          now.push_back(a.to_vector<double>());
        if (first.empty()) first = now;
        CHECK(now == first);
      }
    }
  }
  rp::set_num_threads(before);
}

TEST_CASE("convolutions in a loop and under checkpoint compile") {
  const auto last = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const auto layer = [last](Array x, Array k) {
    return rp::tanh(rp::lax::conv_general_dilated(
        x, k, {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last}));
  };
  const auto loss = [layer](Array x, Array kernels) {
    const auto body = [layer](Array carry, Array k) {
      return std::pair(rp::checkpoint(layer)(carry, k), carry);
    };
    return rp::sum(rp::scan(body, x, kernels).first);
  };
  const Array x = normal(1, {2, 6, 6, 8}), kernels = 0.2f * normal(2, {4, 3, 3, 8, 8});
  const auto step = rp::value_and_grad<0, 1>(loss);
  const Arrays expected = rp::tree_leaves(step(x, kernels)),
               got = rp::tree_leaves(rp::jit(step)(x, kernels));
  for (std::size_t k = 0; k < got.size(); ++k)
    CHECK(largest_difference(got[k], expected[k]) <= 2e-5);
}
