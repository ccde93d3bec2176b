// Convolutions inside compiled programs: the library's against the plain evaluator's.
#include <doctest/doctest.h>
#include <reprise/reprise.h>

#include "runtime/difference.h"
#include "runtime/threads.h"

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
      {"same padding", {2, 9, 11, 16}, {3, 3, 16, 24}, {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last}},
      {"strides", {3, 12, 10, 8}, {3, 2, 8, 16}, {.window_strides = {2, 3}, .dimension_numbers = last}},
      {"features first", {2, 3, 13, 9}, {8, 3, 3, 3}, {.padding = {{0, 2}, {1, 0}}}},
      {"window dilation", {2, 15, 14, 4}, {3, 3, 4, 5}, {.rhs_dilation = {2, 3}, .dimension_numbers = last}},
      {"one channel", {1, 28, 28, 1}, {5, 5, 1, 6}, {.dimension_numbers = last}},
      {"groups", {2, 8, 8, 12}, {3, 3, 3, 8}, {.dimension_numbers = last, .feature_group_count = 4}},
      {"depthwise", {2, 8, 8, 12}, {3, 3, 1, 12}, {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last, .feature_group_count = 12}},
      {"holes in the image", {2, 7, 6, 4}, {3, 3, 4, 4}, {.padding = {{2, 2}, {2, 2}}, .lhs_dilation = {2, 2}, .dimension_numbers = last}},
      {"a line", {4, 33, 8}, {4, 8, 8}, {.window_strides = {2}, .padding = {{3, 0}}, .dimension_numbers = line}},
      {"an image cut off", {2, 9, 9, 4}, {2, 2, 4, 4}, {.padding = {{-1, 0}, {0, -2}}, .dimension_numbers = last}},
  };
}

Arrays value_and_gradients(const Case& c, const Array& image, const Array& kernel, bool compiled) {
  const auto loss = [&c](Array x, Array k) { return rp::sum(rp::sin(rp::lax::conv_general_dilated(x, k, c.options))); };
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
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(largest_difference(got[k], expected[k]) <= 2e-5);
  }
}

TEST_CASE("common convolutions run in the library, gradients included") {
  const auto c = cases()[0];
  const auto loss = [&c](Array x, Array k) { return rp::sum(rp::sin(rp::lax::conv_general_dilated(x, k, c.options))); };
  const std::string text = rp::jit(rp::value_and_grad<0, 1>(loss)).lower(normal(1, c.image), normal(2, c.kernel)).compile().as_text();
  CHECK(text.find("evaluate conv") == std::string::npos);
  std::size_t calls = 0;
  for (std::size_t at = text.find("convolution"); at != std::string::npos; at = text.find("convolution", at + 1)) ++calls;
  CHECK(calls == 3);
}

TEST_CASE("dtypes that the library does not take are evaluated") {
  for (rp::Dtype dtype : {rp::float64, rp::float16, rp::bfloat16, rp::int32}) {
    const Array x = normal(1, {2, 3, 8, 8}).astype(dtype), k = normal(2, {4, 3, 3, 3}).astype(dtype);
    const auto conv = [](Array a, Array b) { return rp::lax::conv_general_dilated(a, b, {}); };
    CHECK(rp::jit(conv)(x, k).to_vector<double>() == conv(x, k).to_vector<double>());
  }
}

TEST_CASE("a convolution's bits do not depend on the number of threads") {
  const int before = rp::num_threads();
  for (const Case& c : cases()) {
    INFO(std::string(c.what));
    const Array image = normal(1, c.image), kernel = normal(2, c.kernel);
    std::vector<std::vector<float>> first;
    for (int threads : {1, 2, 5}) {
      rp::set_num_threads(threads);
      std::vector<std::vector<float>> now;
      for (const Array& a : value_and_gradients(c, image, kernel, true)) now.push_back(a.to_vector<float>());
      if (first.empty()) first = now;
      CHECK(now == first);
    }
  }
  rp::set_num_threads(before);
}

TEST_CASE("convolutions in a loop and under checkpoint compile") {
  const auto last = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const auto layer = [last](Array x, Array k) {
    return rp::tanh(rp::lax::conv_general_dilated(x, k, {.padding = {{1, 1}, {1, 1}}, .dimension_numbers = last}));
  };
  const auto loss = [layer](Array x, Array kernels) {
    const auto body = [layer](Array carry, Array k) { return std::pair(rp::checkpoint(layer)(carry, k), carry); };
    return rp::sum(rp::scan(body, x, kernels).first);
  };
  const Array x = normal(1, {2, 6, 6, 8}), kernels = 0.2f * normal(2, {4, 3, 3, 8, 8});
  const auto step = rp::value_and_grad<0, 1>(loss);
  const Arrays expected = rp::tree_leaves(step(x, kernels)), got = rp::tree_leaves(rp::jit(step)(x, kernels));
  for (std::size_t k = 0; k < got.size(); ++k) CHECK(largest_difference(got[k], expected[k]) <= 2e-5);
}
