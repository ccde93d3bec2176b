// Threads: each traces on its own; a traced value stays on the thread that made it.
#include "derivatives.h"

#include <atomic>
#include <thread>

namespace {

using namespace check;

Array shared_square(Array x) {
  static const auto f = rp::jit([](Array v) { return v * v; }, {.name = "square"});
  return f(x);
}
Array model(Array w, Array x) {
  auto body = [&](Array c, Array v) { return std::pair{rp::sin(w * c) + shared_square(v), c}; };
  auto [end, ys] = rp::scan(body, w, x);
  return end + rp::sum(rp::vmap([&](Array y) { return rp::nn::relu(y) * w; })(ys));
}

}  // namespace

TEST_CASE("threads trace and differentiate at the same time") {
  const Array x = doubles({0.1, 0.2, 0.3});
  std::vector<double> wanted;
  for (int i = 0; i < 4; ++i)
    wanted.push_back(rp::grad(model)(rp::full({}, 0.1 * i, rp::float64), x).item<double>());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 25; ++repeat) {
        const Array w = rp::full({}, 0.1 * i, rp::float64);
        if (rp::grad(model)(w, x).item<double>() != wanted[static_cast<std::size_t>(i)]) ++wrong;
        if (rp::grad(rp::grad(model))(w, x).shape() != rp::Shape{}) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads share one jitted function with its cache") {
  const auto f =
      rp::jit(rp::value_and_grad([](Array w, Array x) { return rp::sum(rp::tanh(w * x)); }));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::int64_t n = 1; n < 12; ++n) {  // every size is traced by whoever comes first
        const Array x = rp::full({n}, 0.5 + i, rp::float64);
        const auto [value, grads] = f(rp::ones_like(x), x);
        const double each = std::tanh(0.5 + i);
        if (std::abs(value.item<double>() - static_cast<double>(n) * each) > 1e-12) ++wrong;
        if (grads.shape() != rp::Shape{n}) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a traced value used on another thread is a TraceError") {
  std::string message;
  auto f = [&](Array x) {
    std::thread other([&] {
      try {
        static_cast<void>(rp::sin(x));
      } catch (const rp::TraceError& e) {
        message = e.what();
      }
    });
    other.join();
    return x * 2.0;
  };
  CHECK(rp::grad(f)(1.0).item<double>() == 2.0);
  CHECK(message.find("thread") != std::string::npos);
}

TEST_CASE("concrete arrays are shared freely, also by a trace on another thread") {
  const Array w = doubles({2.0});
  double result = 0;
  std::thread other([&] {
    result = rp::grad([&](Array x) { return rp::sum(x * w); })(doubles({1.0})).item<double>();
  });
  other.join();
  CHECK(result == 2.0);
}
