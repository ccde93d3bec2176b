// Policies over names for a budget.
#include "error_text.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <sstream>

namespace {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

template <bool own_checkpoints>
Array named_layers(Arrays W, Array x) {
  const auto layer = [](Array w, Array v) {
    const Array h = rp::checkpoint_name(rp::matmul(v, w), "h");
    const Array g = rp::checkpoint_name(rp::sin(h), "g");
    return rp::tanh(rp::matmul(g, w));
  };
  for (const Array& w : W) {
    if (own_checkpoints)
      x = rp::checkpoint(layer)(w, x);
    else
      x = layer(w, x);
  }
  return rp::sum(x * x);
}

Arrays weights() { return Arrays(5, rp::ones({32, 32}) * 0.1f); }
const rp::Type rows{rp::float32, {1024, 32}};

}  // namespace

TEST_CASE("a suggested policy fits, says so, and is what the policy needs") {
  const auto loss = named_layers<true>;
  const auto all = rp::suggest_policy(loss, std::int64_t{1} << 40, rp::types_of(weights()), rows);
  CHECK(all.fits);
  CHECK(all.best_seconds == doctest::Approx(all.plain_seconds));
  const auto none = rp::suggest_policy(loss, 1, rp::types_of(weights()), rows);
  CHECK_FALSE(none.fits);
  CHECK(none.best_peak_bytes == 0);
  CHECK(none.peak_bytes < all.peak_bytes);
  const auto budget = static_cast<std::int64_t>((none.peak_bytes + all.peak_bytes) / 2);
  const auto some = rp::suggest_policy(loss, budget, rp::types_of(weights()), rows);
  CHECK(some.fits);
  CHECK(some.peak_bytes <= static_cast<std::size_t>(budget));
  CHECK(some.best_peak_bytes <= static_cast<std::size_t>(budget));
  CHECK(some.seconds >= all.seconds);
}

TEST_CASE("a function without checkpoints becomes one") {
  const auto s =
      rp::suggest_policy(named_layers<false>, std::int64_t{1} << 40, rp::types_of(weights()), rows);
  const auto f = rp::checkpoint(named_layers<false>, {.policy = s.policy});
  const auto compiled =
      rp::jit(rp::value_and_grad(f)).lower(rp::types_of(weights()), rows).compile();
  CHECK(compiled.memory_analysis().peak_bytes == s.peak_bytes);
}

TEST_CASE("a suggestion is Python and a table") {
  rp::PolicySuggestion s;
  s.saved = {"a", "b"};
  CHECK(s.jax() == "jax.checkpoint_policies.save_only_these_names('a', 'b')");
  s.offloaded = {"c"};
  CHECK(s.jax() ==
        "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=['a', "
        "'b'], names_which_can_be_offloaded=['c'], offload_src='device', "
        "offload_dst='pinned_host')");
  std::ostringstream text;
  text << s;
  CHECK_MENTIONS(text.str(), "does not fit into the budget");
  CHECK_MENTIONS(text.str(), "nothing checkpointed");
}

TEST_CASE("what cannot be advised is a type error") {
  const Arrays W = weights();
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::suggest_policy(named_layers<true>, 0, W, rp::ones({8, 32})).saved;
                 }),
                 "suggest_policy: a budget is from 1 to 2^57 bytes, got 0");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] {
        return rp::suggest_policy([](Array x) { return rp::sum(x * x); }, 100, rp::ones({8})).saved;
      }),
      "suggest_policy: the function must name values that a policy can speak of, got none");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   return rp::suggest_policy([](Array x) { return rp::checkpoint_name(x, "a"); },
                                             100, rp::ones({8}))
                       .saved;
                 }),
                 "suggest_policy: the function must return one floating scalar, got f32[8]");
}
