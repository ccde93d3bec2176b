// Gather, scatter, dynamic_slice and dynamic_update_slice inside compiled programs against the
// plain evaluator.
#include "runtime/index_cases.h"
#include "with_threads.h"

#include <doctest/doctest.h>

namespace reprise {
namespace {

using lax::GatherScatterMode;

Array gathered(const IndexCase& c, const Array& x, const Array& indices,
               const lax::GatherOptions& options, bool compiled) {
  const auto f = [&](Array operand, Array i) {
    return lax::gather(operand, i, c.numbers, c.sizes, options);
  };
  return compiled ? jit(f)(x, indices) : f(x, indices);
}

TEST_CASE("compiled gathers are those of the evaluator, in every mode") {
  std::mt19937 random(1);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32),
                indices = random_indices(random, c, int32);
    for (GatherScatterMode mode : index_modes) {
      const lax::GatherOptions options{.mode = mode, .fill_value = 2.5};
      CHECK(same_elements(gathered(c, x, indices, options, true),
                          gathered(c, x, indices, options, false)));
    }
  }
}

TEST_CASE("compiled gathers move elements and read indices of every dtype") {
  std::mt19937 random(2);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    for (Dtype d : element_dtypes) {
      const Array x = random_elements(random, c.operand, d),
                  indices = random_indices(random, c, int32);
      const lax::GatherOptions options{.mode = GatherScatterMode::fill_or_drop};
      CHECK(same_elements(gathered(c, x, indices, options, true),
                          gathered(c, x, indices, options, false)));
    }
    for (Dtype d : index_dtypes) {
      const Array x = random_elements(random, c.operand, float32),
                  indices = random_indices(random, c, d);
      const GatherScatterMode mode = index_modes[random() % index_modes.size()];
      CHECK(same_elements(gathered(c, x, indices, {.mode = mode}, true),
                          gathered(c, x, indices, {.mode = mode}, false)));
    }
  }
}

TEST_CASE("random compiled gathers are those of the evaluator") {
  std::mt19937 random(3);
  for (int n = 0; n < 300; ++n) {
    const IndexCase c = random_index_case(random);
    CAPTURE(c.name);
    const Dtype d = element_dtypes[random() % element_dtypes.size()],
                index = index_dtypes[random() % index_dtypes.size()];
    const Array x = random_elements(random, c.operand, d),
                indices = random_indices(random, c, index);
    const lax::GatherOptions options{.mode = index_modes[random() % index_modes.size()]};
    CHECK(same_elements(gathered(c, x, indices, options, true),
                        gathered(c, x, indices, options, false)));
  }
}

// ---------------------------------------------------------------------------------------- scatter
using Scatter = Array (*)(Operand, Operand, Operand, const lax::ScatterDimensionNumbers&,
                          const lax::ScatterOptions&);
const std::vector<std::pair<const char*, Scatter>> scatters = {{"scatter", lax::scatter},
                                                               {"scatter_add", lax::scatter_add},
                                                               {"scatter_mul", lax::scatter_mul},
                                                               {"scatter_min", lax::scatter_min},
                                                               {"scatter_max", lax::scatter_max}};

Array scattered(Scatter scatter, const IndexCase& c, const Array& x, const Array& indices,
                const Array& updates, GatherScatterMode mode, bool compiled) {
  const lax::GatherDimensionNumbers& n = c.numbers;
  const lax::ScatterDimensionNumbers numbers{n.offset_dims, n.collapsed_slice_dims,
                                             n.start_index_map, n.operand_batching_dims,
                                             n.start_indices_batching_dims};
  const auto f = [&](Array operand, Array i, Array u) {
    return scatter(operand, i, u, numbers, {.mode = mode});
  };
  return compiled ? jit(f)(x, indices, updates) : f(x, indices, updates);
}

TEST_CASE("compiled scatters are those of the evaluator") {
  std::mt19937 random(11);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32),
                indices = random_indices(random, c, int32);
    const Array updates = random_elements(random, windows_of(c), float32);
    for (const auto& [scatter_name, scatter] : scatters) {
      const std::string name = scatter_name;
      CAPTURE(name);
      const GatherScatterMode mode = index_modes[random() % index_modes.size()];
      CHECK(same_elements(scattered(scatter, c, x, indices, updates, mode, true),
                          scattered(scatter, c, x, indices, updates, mode, false)));
    }
  }
}

TEST_CASE("compiled scatters combine numbers of every dtype as the evaluator does") {
  std::mt19937 random(12);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    for (Dtype d : element_dtypes) {
      const Array x = random_elements(random, c.operand, d),
                  indices = random_indices(random, c, index_dtypes[random() % index_dtypes.size()]);
      const Array updates = random_elements(random, windows_of(c), d);
      const auto& [scatter_name, scatter] = scatters[d == bool_ ? 0 : random() % scatters.size()];
      const std::string name = scatter_name;
      CAPTURE(name);
      const GatherScatterMode mode = index_modes[random() % index_modes.size()];
      CHECK(same_elements(scattered(scatter, c, x, indices, updates, mode, true),
                          scattered(scatter, c, x, indices, updates, mode, false)));
    }
  }
}

TEST_CASE("random compiled scatters are those of the evaluator") {
  std::mt19937 random(13);
  for (int n = 0; n < 400; ++n) {
    const IndexCase c = random_index_case(random);
    CAPTURE(c.name);
    const Dtype d = element_dtypes[1 + random() % (element_dtypes.size() - 1)],
                index = index_dtypes[random() % index_dtypes.size()];
    const Array x = random_elements(random, c.operand, d),
                indices = random_indices(random, c, index);
    const Array updates = random_elements(random, windows_of(c), d);
    const auto& [scatter_name, scatter] = scatters[random() % scatters.size()];
    const std::string name = scatter_name;
    CAPTURE(name);
    const GatherScatterMode mode = index_modes[random() % index_modes.size()];
    CHECK(same_elements(scattered(scatter, c, x, indices, updates, mode, true),
                        scattered(scatter, c, x, indices, updates, mode, false)));
  }
}

TEST_CASE("the smallest and the largest number follow NaN and signed zeros as the evaluator does") {
  const double inf = INFINITY, nan = NAN;
  const Array numbers = array({0.0, -0.0, nan, 1.0, -inf, inf, -nan, 3.0});
  const IndexCase c{"", {64}, {64, 1}, {{}, {0}, {0}}, {1}};
  std::vector<int> places(64);
  std::iota(places.begin(), places.end(), 0);
  for (Dtype d : {float16, bfloat16, float32, float64}) {
    const Array x = reshape(broadcast_to(expand_dims(numbers, 1), {8, 8}), {64}).astype(d);
    const Array updates = reshape(broadcast_to(expand_dims(numbers, 0), {8, 8}), {64}).astype(d);
    const Array indices = array(places, Shape{64, 1});
    for (const Scatter scatter : {Scatter{lax::scatter_min}, Scatter{lax::scatter_max}}) {
      const auto mode = GatherScatterMode::clip;
      CHECK(same_elements(scattered(scatter, c, x, indices, updates, mode, true),
                          scattered(scatter, c, x, indices, updates, mode, false)));
    }
  }
}

TEST_CASE("a scatter's bits do not depend on the number of threads") {
  std::mt19937 random(14);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32),
                indices = random_indices(random, c, int32);
    const Array updates = random_elements(random, windows_of(c), float32);
    for (const Scatter scatter : {Scatter{lax::scatter}, Scatter{lax::scatter_add}}) {
      const Array expected =
          scattered(scatter, c, x, indices, updates, GatherScatterMode::fill_or_drop, false);
      for (int threads : {1, 2, 5}) {
        const WithThreads set(threads);
        CHECK(same_elements(
            scattered(scatter, c, x, indices, updates, GatherScatterMode::fill_or_drop, true),
            expected));
      }
    }
  }
}

// ------------------------------------------------------------------------------------------ slices
TEST_CASE("gathers, scatters and slices run as kernels") {
  const Array x = ones({64, 32}), indices = array({{1}, {2}});
  const auto f = [](Array a, Array i) {
    const Array rows = lax::gather(a, i, {{1}, {0}, {0}}, {1, 32});
    const Array first = reshape(lax::slice(i, {0, 0}, {1, 1}), {});
    const Array added = lax::scatter_add(a, i, rows, {{1}, {0}, {0}});
    return std::pair(lax::dynamic_slice(added, {first, first}, {3, 5}),
                     lax::dynamic_update_slice(a, rows, {first, first}));
  };
  const std::string text = jit(f).lower(x, indices).compile().as_text();
  CHECK(text.find("evaluate") == std::string::npos);
  CHECK(text.find("kernel [gather]") != std::string::npos);
  CHECK(text.find("kernel [scatter-add]") != std::string::npos);
  CHECK(text.find("kernel [dynamic_slice]") != std::string::npos);
  CHECK(text.find("kernel [dynamic_update_slice]") != std::string::npos);
}

TEST_CASE("keys are gathered as they are") {
  const Array keys = random::split(random::key(7), 40);
  const auto f = [](Array k, Array i) {
    return lax::gather(k, i, {{}, {0}, {0}}, {1}, {.mode = GatherScatterMode::fill_or_drop});
  };
  const Array indices = array({{3}, {39}, {-1}, {40}, {0}});
  CHECK(random::key_data(jit(f)(keys, indices)).to_vector<std::uint32_t>() ==
        random::key_data(f(keys, indices)).to_vector<std::uint32_t>());
}

TEST_CASE("compiled boxes at dynamic places are those of the evaluator") {
  std::mt19937 random(4);
  struct Case {
    Shape operand, box;
  };
  const Case cases[] = {{{7}, {3}},
                        {{90001}, {70003}},
                        {{30, 50}, {1, 50}},
                        {{130, 257}, {120, 131}},
                        {{5, 6, 7}, {5, 2, 7}},
                        {{200, 300}, {200, 300}},
                        {{3, 4}, {0, 2}},
                        {{}, {}}};
  for (const Case& c : cases) {
    for (Dtype d : {int8, float16, float32, float64}) {
      const Array x = random_elements(random, c.operand, d);
      for (int place : {-1000, -1, 0, 1, 2, 77, 1 << 30}) {
        CAPTURE(place);
        const auto f = [&](Array a, Array i) {
          return lax::dynamic_slice(a, Arrays(c.operand.size(), i), c.box);
        };
        CHECK(same_elements(jit(f)(x, array(place)), f(x, array(place))));
        const auto literal = [&](Array a) {
          return lax::dynamic_slice(a, Arrays(c.operand.size(), Array(place)), c.box);
        };
        CHECK(same_elements(jit(literal)(x), literal(x)));
        const Array box = random_elements(random, c.box, d);
        const auto update = [&](Array a, Array u, Array i) {
          return lax::dynamic_update_slice(a, u, Arrays(c.operand.size(), i));
        };
        CHECK(same_elements(jit(update)(x, box, array(place)), update(x, box, array(place))));
      }
    }
  }
}

TEST_CASE("a gather's bits do not depend on the number of threads") {
  std::mt19937 random(5);
  for (const IndexCase& c : index_cases()) {
    CAPTURE(c.name);
    const Array x = random_elements(random, c.operand, float32),
                indices = random_indices(random, c, int32);
    const lax::GatherOptions options{.mode = GatherScatterMode::fill_or_drop};
    const Array expected = gathered(c, x, indices, options, false);
    for (int threads : {1, 2, 5}) {
      const WithThreads set(threads);
      CHECK(same_elements(gathered(c, x, indices, options, true), expected));
    }
  }
}

// ---------------------------------------------------------------------------------------- in place
std::size_t peak_of(const auto& f, const auto&... args) {
  return jit(f).lower(args...).compile().memory_analysis().peak_bytes;
}

TEST_CASE("an operand that ends with a scatter or an update is changed in place") {
  const Array x = ones({512, 256}), row = ones({1, 256}), i = array(3),
              indices = array({{3}, {500}, {3}});
  const std::size_t bytes = x.nbytes();
  const auto update = [](Array a, Array u, Array k) {
    return lax::dynamic_update_slice(a * 2.0f, u, {k, Array(0)});
  };
  CHECK(peak_of(update, x, row, i) <= bytes + 64);  // the place, counted from the front
  CHECK(same_elements(jit(update)(x, row, i), update(x, row, i)));
  const auto gradient = [](Array a, Array k) {
    return grad([k](Array t) { return sum(sin(lax::gather(t, k, {{1}, {0}, {0}}, {1, 256}))); })(a);
  };
  CHECK(peak_of(gradient, x, indices) < bytes + bytes / 8);
}

TEST_CASE("an operand that is read again is not changed") {
  const Array x = ones({512, 256}), row = ones({1, 256}), i = array(3);
  const auto update = [](Array a, Array u, Array k) {
    const Array twice = a * 2.0f;
    const Array changed = lax::dynamic_update_slice(twice, u, {k, Array(0)});
    return std::pair(changed, lax::dynamic_update_slice(twice, changed, {k, Array(0)}));
  };
  const auto [got, got_again] = jit(update)(x, row, i);
  const auto [expected, expected_again] = update(x, row, i);
  CHECK(same_elements(got, expected));
  CHECK(same_elements(got_again, expected_again));
}

TEST_CASE("an update that reads its operand's own memory waits for a copy") {
  std::mt19937 random(21);
  const Array x = random_elements(random, {300, 70}, float32), i = array(7);
  const auto onto_itself = [](Array a, Array k) {
    const Array twice = a * 2.0f;
    return lax::dynamic_update_slice(twice, lax::slice(twice, {0, 0}, {200, 70}), {k, Array(0)});
  };
  CHECK(same_elements(jit(onto_itself)(x, i), onto_itself(x, i)));
}

TEST_CASE("a donated argument is changed in place") {
  const auto update = [](Array a, Array u, Array k) {
    return lax::dynamic_update_slice(a, u, {k, Array(0)});
  };
  const auto step = jit(update, {.donate_argnums = {0}});
  const Array row = ones({1, 256}), i = array(3);
  Array x = zeros({512, 256});
  const Array expected = update(x, row, i);
  CHECK(step.lower(x, row, i).compile().memory_analysis().alias_bytes == x.nbytes());
  CHECK(same_elements(step(std::move(x), row, i), expected));
}

}  // namespace
}  // namespace reprise
