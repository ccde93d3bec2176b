// Gather, scatter, dynamic_slice and dynamic_update_slice inside compiled programs against the plain evaluator.
#include <doctest/doctest.h>

#include "runtime/index_cases.h"
#include "runtime/threads.h"

namespace reprise {
namespace {

using lax::GatherScatterMode;

// Sets the number of threads for one test.
struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

Array gathered(const IndexCase& c, const Array& x, const Array& indices, const lax::GatherOptions& options, bool compiled) {
  const auto f = [&](Array operand, Array i) { return lax::gather(operand, i, c.numbers, c.sizes, options); };
  return compiled ? jit(f)(x, indices) : f(x, indices);
}

TEST_CASE("compiled gathers are those of the evaluator, in every mode") {
  std::mt19937 random(1);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32), indices = random_indices(random, c, int32);
    for (GatherScatterMode mode : index_modes) {
      const lax::GatherOptions options{.mode = mode, .fill_value = 2.5};
      CHECK(same_elements(gathered(c, x, indices, options, true), gathered(c, x, indices, options, false)));
    }
  }
}

TEST_CASE("compiled gathers move elements and read indices of every dtype") {
  std::mt19937 random(2);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    for (Dtype d : element_dtypes) {
      const Array x = random_elements(random, c.operand, d), indices = random_indices(random, c, int32);
      const lax::GatherOptions options{.mode = GatherScatterMode::fill_or_drop};
      CHECK(same_elements(gathered(c, x, indices, options, true), gathered(c, x, indices, options, false)));
    }
    for (Dtype d : index_dtypes) {
      const Array x = random_elements(random, c.operand, float32), indices = random_indices(random, c, d);
      for (GatherScatterMode mode : index_modes) {
        CHECK(same_elements(gathered(c, x, indices, {.mode = mode}, true), gathered(c, x, indices, {.mode = mode}, false)));
      }
    }
  }
}

TEST_CASE("random compiled gathers are those of the evaluator") {
  std::mt19937 random(3);
  for (int n = 0; n < 300; ++n) {
    const IndexCase c = random_index_case(random);
    CAPTURE(c.name);
    const Dtype d = element_dtypes[random() % element_dtypes.size()], index = index_dtypes[random() % index_dtypes.size()];
    const Array x = random_elements(random, c.operand, d), indices = random_indices(random, c, index);
    const lax::GatherOptions options{.mode = index_modes[random() % index_modes.size()]};
    CHECK(same_elements(gathered(c, x, indices, options, true), gathered(c, x, indices, options, false)));
  }
}

TEST_CASE("gathers and slices run as kernels") {
  const Array x = ones({64, 32}), indices = array({{1}, {2}});
  const auto f = [](Array a, Array i) {
    const Array rows = lax::gather(a, i, {{1}, {0}, {0}}, {1, 32});
    const Array first = reshape(lax::slice(i, {0, 0}, {1, 1}), {});
    return std::pair(rows, lax::dynamic_slice(a, {first, first}, {3, 5}));
  };
  const std::string text = jit(f).lower(x, indices).compile().as_text();
  CHECK(text.find("evaluate") == std::string::npos);
  CHECK(text.find("kernel [gather]") != std::string::npos);
  CHECK(text.find("kernel [dynamic_slice]") != std::string::npos);
}

TEST_CASE("keys are gathered as they are") {
  const Array keys = random::split(random::key(7), 40);
  const auto f = [](Array k, Array i) { return lax::gather(k, i, {{}, {0}, {0}}, {1}, {.mode = GatherScatterMode::fill_or_drop}); };
  const Array indices = array({{3}, {39}, {-1}, {40}, {0}});
  CHECK(random::key_data(jit(f)(keys, indices)).to_vector<std::uint32_t>() == random::key_data(f(keys, indices)).to_vector<std::uint32_t>());
}

TEST_CASE("compiled boxes at dynamic places are those of the evaluator") {
  std::mt19937 random(4);
  struct Case {
    Shape operand, box;
  };
  const Case cases[] = {{{7}, {3}}, {{90001}, {70003}}, {{30, 50}, {1, 50}}, {{130, 257}, {120, 131}}, {{5, 6, 7}, {5, 2, 7}},
                        {{200, 300}, {200, 300}}, {{3, 4}, {0, 2}}, {{}, {}}};
  for (const Case& c : cases) {
    for (Dtype d : {int8, float16, float32, float64}) {
      const Array x = random_elements(random, c.operand, d);
      for (int place : {-1000, -1, 0, 1, 2, 77, 1 << 30}) {
        CAPTURE(place);
        const auto f = [&](Array a, Array i) { return lax::dynamic_slice(a, Arrays(c.operand.size(), i), c.box); };
        CHECK(same_elements(jit(f)(x, array(place)), f(x, array(place))));
        const auto literal = [&](Array a) { return lax::dynamic_slice(a, Arrays(c.operand.size(), Array(place)), c.box); };
        CHECK(same_elements(jit(literal)(x), literal(x)));
      }
    }
  }
}

TEST_CASE("a gather's bits do not depend on the number of threads") {
  std::mt19937 random(5);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32), indices = random_indices(random, c, int32);
    const lax::GatherOptions options{.mode = GatherScatterMode::fill_or_drop};
    const Array expected = gathered(c, x, indices, options, false);
    for (int threads : {1, 2, 5}) {
      const Threads set(threads);
      CHECK(same_elements(gathered(c, x, indices, options, true), expected));
    }
  }
}

}  // namespace
}  // namespace reprise
