// 13. A budget in bytes: the compiler decides what is computed again so that a step fits.
#include <reprise/reprise.h>

#include <cstdio>

namespace rp = reprise;
using namespace rp::literals;
using rp::Array;
using rp::Arrays;

Array loss(Arrays weights, Array x) {
  for (const Array& w : weights) {
    const Array h = rp::matmul(x, w);
    x = x + rp::nn::gelu(h);
  }
  return rp::mean(x * x);
}

int main() {
  Arrays weights;
  for (int i = 0; i < 12; ++i) {
    const Array key = rp::random::key(i);
    weights.push_back(rp::random::normal(key, {64, 64}) * 0.1f);
  }
  const Array x = rp::random::normal(rp::random::key(99), {2048, 64});
  const auto step = rp::value_and_grad(loss);

  const auto plain = rp::jit(step);
  const auto peak =
      static_cast<std::int64_t>(plain.lower(weights, x).compile().memory_analysis().peak_bytes);
  const auto half = rp::jit(step, {.memory_budget = peak / 2});
  const auto compiled = half.lower(weights, x).compile();
  const rp::BudgetAnalysis budget = compiled.budget_analysis();
  std::printf("within half of the memory: %s\n",
              budget.peak_bytes <= static_cast<std::size_t>(peak / 2) ? "yes" : "no");
  std::printf("values are computed again: %s\n", budget.repeated.empty() ? "no" : "yes");

  const auto [value, gradients] = plain(weights, x);
  const auto [same_value, same_gradients] = half(weights, x);
  bool same = rp::all(rp::equal(value, same_value)).item<bool>();
  for (std::size_t i = 0; i < gradients.size(); ++i)
    same = same && rp::all(rp::equal(gradients[i], same_gradients[i])).item<bool>();
  std::printf("the same loss and gradients, bit for bit: %s\n", same ? "yes" : "no");

  // Types are enough for plans: no batch is ever made.
  const auto make = [&](std::int64_t batch) {
    return plain.lower(rp::types_of(weights), rp::Type{rp::float32, {batch, 64}});
  };
  const std::int64_t batch = rp::largest_fitting(make, 64_MiB);
  std::printf("the largest batch for 64 MiB is above 20000: %s\n", batch > 20000 ? "yes" : "no");
}
