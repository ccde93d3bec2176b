// JAX's RematTest, diagnostics: what is said about residuals, their bits, and errors with the
// user's line.
#include "remat/upstream.h"

using namespace upstream;

namespace {

struct Saved {
  std::size_t arguments = 0, computed = 0;
  std::string text;
};
Saved saved_of(const rp::CheckpointOptions& options) {
  auto f = [](Array x) {
    x = rp::sin(x);
    return rp::cos(rp::sum(x));
  };
  Saved saved;
  for (const rp::SavedResidual& r :
       rp::saved_residuals(rp::checkpoint(f, options), rp::arange(3.0))) {
    ++(r.origin.find("from the argument") == 0 ? saved.arguments : saved.computed);
    saved.text += r.origin + "\n";
  }
  return saved;
}

}  // namespace

TEST_CASE("remat_residual_logging: inputs only, intermediates only, both") {
  const Saved none = saved_of({});
  CHECK(none.arguments == 1);
  CHECK(none.computed == 0);
  const Saved all = saved_of({.policy = P::everything_saveable});
  CHECK(all.arguments == 0);
  CHECK(all.computed == 2);
  CHECK(contains(all.text, " sin "));
  CHECK(contains(all.text, " cos "));
  const Saved some = saved_of({.policy = save_prim("cos")});
  CHECK(some.arguments == 1);
  CHECK(some.computed == 1);
  CHECK(!contains(some.text, " sin "));
  CHECK(contains(some.text, " cos "));
}

TEST_CASE("excess_precision: both passes see the residual with the bits of its dtype") {
  auto f = rp::checkpoint(
      [](Array x) {
        x = rp::checkpoint_name(x * 1.0078125, "rounded");  // 1 + the step of bfloat16 at 1
        return x * x;
      },
      {.policy = P::save_only_these_names("rounded")});
  const Array x = rp::array(std::vector<float>{1.0078125F, 3.1415926F}).astype(rp::bfloat16);
  const rp::FwdBwd programs = rp::fwd_bwd(f, x);
  CHECK(contains(programs.forward.str(), "reduce_precision[exponent_bits=8 mantissa_bits=7]"));
  CHECK(!contains(programs.backward.str(), "name["));  // read, not computed again
  const Array saved = programs.forward.eval({x}).back();
  const Array exact = (x * 1.0078125).astype(rp::bfloat16);
  CHECK(numbers(saved) == numbers(exact));
}

TEST_CASE(
    "concreteness_error_includes_user_code: the message has the user's line, also beside static "
    "arguments") {
  const int line = __LINE__ + 1;
  auto f = rp::checkpoint([](Array x) { return x.item<float>() > 0 ? rp::sin(x) : rp::cos(x); });
  const std::string alone = error_of([&] { return f(3.0); });
  CHECK(contains(alone, "upstream_diagnostics_test.cpp:" + std::to_string(line)));
  auto g = rp::checkpoint(
      [](Array x, bool flip) { return x.item<float>() > 0 && flip ? rp::sin(x) : rp::cos(x); });
  const std::string beside = error_of([&] { return g(3.0, true); });
  CHECK(contains(beside, "item: a number is needed while tracing a function for checkpoint"));
  CHECK(contains(beside, "upstream_diagnostics_test.cpp:" + std::to_string(line + 4)));
}
