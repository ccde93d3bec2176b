#include "ops/gather.h"

#include "ops/index_reference.h"
#include "ops/mapped_axes.h"
#include "ops/records.h"

namespace reprise {
namespace {

const auto all_modes = {GatherScatterMode::clip, GatherScatterMode::fill_or_drop,
                        GatherScatterMode::promise_in_bounds};

TEST_CASE("gather follows its definition in every mode") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    const Array x = counting(c.operand);
    for (GatherScatterMode mode : all_modes) {
      const Array y =
          lax::gather(x, c.indices, c.numbers, c.sizes, {.mode = mode, .fill_value = -7});
      CHECK(y.shape() == c.windows);
      const bool fills = mode == GatherScatterMode::fill_or_drop;
      check_numbers(y, gather_reference(x, c.indices, c.numbers, c.sizes, c.windows, fills, -7));
    }
  }
}

TEST_CASE("gather fills with NaN or the extreme integer unless told otherwise") {
  const auto outside = [](const Array& x, std::optional<double> fill = std::nullopt) {
    return lax::gather(x, array({{5}}), {{}, {0}, {0}}, {1},
                       {.mode = GatherScatterMode::fill_or_drop, .fill_value = fill});
  };
  for (Dtype d : {float16, bfloat16, float32, float64}) {
    CHECK(std::isnan(outside(array({1, 2}, d)).item<double>()));
    CHECK(outside(array({1, 2}, d), 0.5).item<double>() == 0.5);
  }
  CHECK(outside(array({1, 2}, int8)).item<int>() == -128);
  CHECK(outside(array({1, 2}, int64)).item<std::int64_t>() == INT64_MIN);
  CHECK(outside(array({1, 2}, uint8)).item<int>() == 255);
  CHECK(outside(array({1, 2}, uint64)).item<std::uint64_t>() == UINT64_MAX);
  CHECK(outside(array({false, false})).item<bool>());
  CHECK(outside(array({1, 2}), 3).item<int>() == 3);
}

TEST_CASE("gather reads indices of every integer dtype") {
  const Array x = counting({5});
  for (Dtype d : {int8, uint8, int16, uint16, int32, uint32, int64, uint64}) {
    check_numbers(lax::gather(x, array({{4}, {0}}, d), {{}, {0}, {0}}, {1}), {4, 0});
  }
  const Array huge = array(std::vector<std::uint64_t>{UINT64_MAX}, Shape{1, 1});
  check_numbers(lax::gather(x, huge, {{}, {0}, {0}}, {1}), {4});
  CHECK(lax::gather(x, lax::full({0, 1}, 0, int32), {{}, {0}, {0}}, {1}).shape() == Shape{0});
  CHECK(lax::gather(counting({0}), lax::full({0, 1}, 0, int32), {{}, {0}, {0}}, {1}).shape() ==
        Shape{0});
}

TEST_CASE("gather is linear in its operand: the transpose scatters back") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    for (GatherScatterMode mode : all_modes) {
      // With a promise only windows that are inside are defined.
      if (mode == GatherScatterMode::promise_in_bounds && c.reaches_outside) continue;
      check_derivatives(
          [&](const Arrays& a) {
            return Arrays{
                lax::gather(a[0], a[1], c.numbers, c.sizes, {.mode = mode, .fill_value = 0})};
          },
          {counting(c.operand), c.indices});
    }
  }
}

TEST_CASE("gather maps over operand, indices or both") {
  for (const WindowCase& c : window_cases()) {
    CAPTURE(c.name);
    const FlatFunction f = [&](const Arrays& a) {
      return Arrays{lax::gather(a[0], a[1], c.numbers, c.sizes,
                                {.mode = GatherScatterMode::fill_or_drop, .fill_value = -7})};
    };
    Shape operands = c.operand;
    operands.insert(operands.begin(), 2);
    const Array many = counting(operands), one = counting(c.operand);
    const Array indices = lax::concatenate(
        {lax::expand_dims(c.indices, {0}), lax::expand_dims(lax::sub(c.indices, 1), {0})}, 0);
    for (std::int64_t axis = 0; axis < many.ndim(); ++axis) {
      check_mapped(f, {many, c.indices}, {axis, std::nullopt});
      check_mapped(f, {many, indices}, {axis, 0});
    }
    check_mapped(f, {one, indices}, {std::nullopt, indices.ndim() - 1});
    check_mapped(f, {one, indices}, {std::nullopt, 0});
  }
}

TEST_CASE("dimension numbers print as in JAX and can be read back") {
  const lax::GatherDimensionNumbers n{{0, 2}, {1}, {}, {3}, {4}};
  const std::string text =
      "GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(), "
      "operand_batching_dims=(3,), start_indices_batching_dims=(4,))";
  CHECK(GatherNumbers(n).text() == text);
  CHECK(GatherNumbers(parse_gather_numbers(text)).text() == text);
  CHECK_THROWS_AS(parse_gather_numbers("GatherDimensionNumbers(offset_dims=(0,))"), TypeError);
  CHECK_THROWS_AS(parse_gather_numbers(""), TypeError);
  std::string letters = text;
  letters[letters.find("0, 2")] = 'x';
  CHECK_THROWS_AS(parse_gather_numbers(letters), TypeError);

  const Params params =
      gather_params(n, {1, 1}, {.mode = GatherScatterMode::fill_or_drop}, float32);
  Params printed = params.with("dimension_numbers", text);
  CHECK(gather_p.parsed_params(printed, {}, {}) == params);
  CHECK(gather_p.parsed_params(printed.with("fill_value", std::nan("")), {}, {}) == params);
  CHECK(python_text(*params.find("fill_value")) == "nan");
  CHECK(python_text(*params.find("mode")) == "GatherScatterMode.FILL_OR_DROP");
}

TEST_CASE("gather refuses dimension numbers that do not fit") {
  const Array x = counting({4, 5}), i = array({{1}, {2}});
  const auto gathered = [&](const lax::GatherDimensionNumbers& n, lax::Ints sizes, Array indices) {
    return error_of<TypeError>([&] { lax::gather(x, indices, n, sizes); });
  };
  CHECK(gathered({{1}, {0}, {0}}, {1, 6}, i).starts_with("gather: windows must fit into f64[4,5]"));
  CHECK(gathered({{1}, {0}, {0}}, {2, 5}, i).starts_with("gather: windows must fit"));
  CHECK(gathered({{1}, {0}, {0}}, {1}, i).starts_with("gather: windows must fit"));
  CHECK(gathered({{1}, {0}, {0}}, {1, -1}, i).starts_with("gather: windows must fit"));
  const Array no_components = lax::full({2, 0}, 0, int32);  // two windows, both at the start
  CHECK(gathered({{1, 2}, {}, {}}, {4, 6}, no_components).starts_with("gather: windows must fit"));
  CHECK(gathered({{2}, {0}, {0}}, {1, 5}, i).starts_with("gather: offset_dims must be different"));
  CHECK(
      gathered({{1, 0}, {}, {0}}, {1, 5}, i).starts_with("gather: offset_dims must be different"));
  CHECK(gathered({{1}, {2}, {0}}, {1, 5}, i).starts_with("gather: collapsed_slice_dims"));
  CHECK(gathered({{1}, {0}, {2}}, {1, 5}, i).starts_with("gather: start_index_map must be"));
  CHECK(gathered({{1}, {0}, {0, 1}}, {1, 5}, i).starts_with("gather: start_index_map must have"));
  CHECK(gathered({{}, {0}, {0}}, {1, 5}, i).starts_with("gather: every dimension of f64[4,5]"));
  CHECK(gathered({{1}, {}, {1}, {0}, {0}}, {1, 5}, i).starts_with("gather: batching dimensions"));
  CHECK(gathered({{1}, {}, {1}, {0}, {}}, {1, 5}, i).starts_with("gather: batching dimensions"));
  CHECK(gathered({{1}, {}, {0}, {0}, {0}}, {1, 5}, i).starts_with("gather: start_index_map and"));
  CHECK(gathered({{1}, {0}, {1}, {0}, {0}}, {1, 5}, i)
            .starts_with("gather: collapsed_slice_dims and"));
  CHECK(
      gathered({{1}, {0}, {0}}, {1, 5}, array(1)).starts_with("gather: indices must be integers"));
  CHECK(gathered({{1}, {0}, {0}}, {1, 5}, array({{1.0}})).starts_with("gather: indices must be"));
  const Params params = gather_params({{1}, {0}, {0}}, {1, 5}, {}, float64);
  CHECK_THROWS_AS(gather_p.bind({x, i}, params.with("mode", std::string("ONE_HOT"))), TypeError);
  CHECK_THROWS_AS(gather_p.bind({x}, params), TypeError);
}

}  // namespace
}  // namespace reprise
