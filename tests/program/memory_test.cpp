// Eager evaluation drops a value after its last reader.
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;

TEST_CASE("the peak of a chain of 32 layers evaluated eagerly is a few arrays, not 32") {
  const std::size_t layer = 64 * 1024 * sizeof(float);
  const Array x = rp::ones({64, 1024});
  auto f = [](Array v) {
    for (int i = 0; i < 32; ++i) v = rp::sin(v);
    return v;
  };
  const rp::Jaxpr program = rp::make_jaxpr(f)(x);
  rp::reset_peak_live_bytes();
  const std::size_t before = rp::live_bytes();
  {
    const rp::Arrays y = program.eval({x});
    CHECK(rp::live_bytes() - before == layer);
  }
  CHECK(rp::live_bytes() == before);
  CHECK(rp::peak_live_bytes() - before <= 2 * layer);
}

TEST_CASE("a gradient keeps its residuals and nothing else") {
  const std::size_t layer = 64 * 1024 * sizeof(float);
  const Array x = rp::ones({64, 1024});
  auto loss = [](Array v) {
    for (int i = 0; i < 32; ++i) v = rp::sin(v);
    return rp::sum(v);
  };
  rp::reset_peak_live_bytes();
  const std::size_t before = rp::live_bytes();
  const Array g = rp::grad(loss)(x);
  CHECK(rp::live_bytes() - before == layer);
  // 32 cosines, and two or three values in flight.
  CHECK(rp::peak_live_bytes() - before >= 32 * layer);
  CHECK(rp::peak_live_bytes() - before <= 36 * layer);
}
