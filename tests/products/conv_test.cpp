// Every convolution is compared with the definition, summed in double.
#include "products/conv.h"

#include "base/memory.h"
#include "products/conv_products.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t product(const Ints& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t s : sizes) n *= s;
  return n;
}
Ints joined(Ints front, const Ints& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}
// Strides of dimensions that lie in memory in this order, the last one fastest.
Ints strides_in_order(const Ints& dims, const std::vector<std::size_t>& order) {
  Ints strides(dims.size());
  std::int64_t next = 1;
  for (std::size_t i = order.size(); i-- > 0; next *= dims[order[i]]) strides[order[i]] = next;
  return strides;
}

enum class Order { features_first, features_last };
std::vector<std::size_t> places(Order order, std::size_t rank, bool is_kernel) {
  std::vector<std::size_t> out;
  for (std::size_t d = 2; d < rank; ++d) out.push_back(d);
  if (order == Order::features_first) {
    out.insert(out.begin(), {0, 1});
  } else if (is_kernel) {
    out.insert(out.end(), {1, 0});  // HWIO
  } else {
    out.insert(out.begin(), 0);
    out.push_back(1);  // NHWC
  }
  return out;
}

// Sets the result's sizes and the strides.
ConvSpec finished(ConvSpec s, Order order = Order::features_last) {
  const std::size_t n = s.in.size();
  for (Ints* x : {&s.stride, &s.lhs_dilation, &s.rhs_dilation}) {
    if (x->empty()) x->assign(n, 1);
  }
  for (Ints* x : {&s.low, &s.high}) {
    if (x->empty()) x->assign(n, 0);
  }
  s.out.clear();
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t holes = s.in[d] == 0 ? 0 : (s.in[d] - 1) * s.lhs_dilation[d] + 1;
    const std::int64_t reach = s.window[d] == 0 ? 0 : (s.window[d] - 1) * s.rhs_dilation[d] + 1;
    const std::int64_t room = holes + s.low[d] + s.high[d] - reach;
    s.out.push_back(room < 0 ? 0 : room / s.stride[d] + 1);
  }
  s.lhs_strides =
      strides_in_order(joined({s.batch, s.lhs_features}, s.in), places(order, n + 2, false));
  s.rhs_strides =
      strides_in_order(joined({s.out_features, s.lhs_features / s.feature_groups}, s.window),
                       places(order, n + 2, true));
  s.out_strides = strides_in_order(joined({s.batch / s.batch_groups, s.out_features}, s.out),
                                   places(order, n + 2, false));
  return s;
}

std::vector<float> random_values(std::int64_t n, unsigned seed) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& v : x) v = uniform(random);
  return x;
}
template <class F>
void for_each(const Ints& dims, const F& f) {
  for (std::int64_t i = 0, n = product(dims); i < n; ++i) {
    Ints index(dims.size());
    std::int64_t rest = i;
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    f(index);
  }
}
std::size_t offset(const Ints& strides, std::int64_t first, std::int64_t second,
                   const Ints& place) {
  std::int64_t at = first * strides[0] + second * strides[1];
  for (std::size_t d = 0; d < place.size(); ++d) at += place[d] * strides[d + 2];
  return static_cast<std::size_t>(at);
}

struct Problem {
  ConvSpec s;
  std::vector<float> lhs, rhs, out;
  explicit Problem(const ConvSpec& spec)
      : s(spec),
        lhs(random_values(s.batch * s.lhs_features * product(s.in), 1)),
        rhs(random_values(s.out_features * (s.lhs_features / s.feature_groups) * product(s.window),
                          2)),
        out(static_cast<std::size_t>(s.batch / s.batch_groups * s.out_features * product(s.out)),
            7.0f) {}

  double at(std::int64_t n, std::int64_t o, const Ints& p) const {
    const std::int64_t groups = s.feature_groups * s.batch_groups,
                       g = o / (s.out_features / groups);
    const std::int64_t inputs = s.lhs_features / s.feature_groups;
    const std::int64_t image = s.batch_groups > 1 ? g * (s.batch / s.batch_groups) + n : n;
    const std::int64_t first = s.batch_groups > 1 ? 0 : g * inputs;
    double sum = 0;
    for_each(s.window, [&](const Ints& w) {
      Ints from(p.size()), tap = w;
      for (std::size_t d = 0; d < p.size(); ++d) {
        const std::int64_t x = p[d] * s.stride[d] + w[d] * s.rhs_dilation[d] - s.low[d];
        if (x < 0 || x % s.lhs_dilation[d] != 0 || x / s.lhs_dilation[d] >= s.in[d]) return;
        from[d] = x / s.lhs_dilation[d];
        if (s.reverse_window) tap[d] = s.window[d] - 1 - w[d];
      }
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += static_cast<double>(lhs[offset(s.lhs_strides, image, first + i, from)]) *
               rhs[offset(s.rhs_strides, o, i, tap)];
      }
    });
    return sum;
  }
  void run(const Convolution& c) {
    const auto scratch = allocate_buffer(c.scratch_bytes());
    REQUIRE(c.run(lhs.data(), rhs.data(), out.data(), scratch.get()));
  }
};

void check(const ConvSpec& s, const Convolution& convolution) {
  CAPTURE(s.in.size());
  CAPTURE(s.stride.size());
  CAPTURE(s.reverse_window);
  Problem p(s);
  p.run(convolution);
  double worst = 0;
  for_each(joined({s.batch / s.batch_groups, s.out_features}, s.out), [&](const Ints& index) {
    const Ints place(index.begin() + 2, index.end());
    const double got = p.out[offset(s.out_strides, index[0], index[1], place)];
    const double error = std::abs(got - p.at(index[0], index[1], place));
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  });
  CHECK(worst < 1e-4);
}
// As this machine does it, and by our own products, as machines do that the library has no code
// for.
void check(const ConvSpec& s, int threads = 2) {
  check(s, *make_convolution(s, threads));
  if (result_is_empty(s) || sum_is_empty(s)) return;
  for (const int n : {1, threads, 16}) check(s, *make_conv_products(with_a_dimension(s), n));
}

ConvSpec image(std::int64_t features = 16, std::int64_t outputs = 32) {
  ConvSpec s;
  s.batch = 2;
  s.lhs_features = features;
  s.out_features = outputs;
  s.in = {9, 11};
  s.window = {3, 3};
  return s;
}

TEST_CASE("convolutions are right in one to three dimensions and both orders") {
  for (const Order order : {Order::features_first, Order::features_last}) {
    for (const std::size_t n : {1u, 2u, 3u}) {
      ConvSpec s = image();
      s.in = Ints(n, 7);
      s.window = Ints(n, 3);
      check(finished(s, order));
      s.low = s.high = Ints(n, 1);
      check(finished(s, order));
      s.stride = Ints(n, 2);
      check(finished(s, order));
    }
  }
}

TEST_CASE("strides, padding and dilation of the window") {
  for (const Order order : {Order::features_first, Order::features_last}) {
    ConvSpec s = image();
    s.low = {1, 0};
    s.high = {0, 2};
    s.stride = {2, 1};
    check(finished(s, order));
    s.rhs_dilation = {2, 3};
    s.high = {2, 3};
    check(finished(s, order));
    s = image(3, 5);  // odd numbers of features
    s.low = s.high = {1, 1};
    check(finished(s, order));
    s.window = {1, 1};
    s.low = s.high = {0, 0};
    check(finished(s, order));
  }
}

TEST_CASE("negative padding crops, where the stride is one") {
  ConvSpec s = image();
  s.low = {-1, -2};
  s.high = {1, -1};
  check(finished(s));
}

TEST_CASE("groups of features") {
  for (const std::int64_t groups : {2, 4, 16}) {
    ConvSpec s = image(16, 32);
    s.feature_groups = groups;
    s.low = s.high = {1, 1};
    check(finished(s));
    check(finished(s, Order::features_first));
  }
}

TEST_CASE("the gradient of an image: holes in lhs, the window reversed") {
  for (const bool reverse : {true, false}) {
    for (const std::int64_t stride : {1, 2}) {
      ConvSpec s = image(32, 16);
      s.reverse_window = reverse;
      s.lhs_dilation = {stride, stride};
      s.low = {1, 2};
      s.high = {2, 1};
      check(finished(s));
      s.feature_groups = 2;
      check(finished(s, Order::features_first));
    }
  }
  ConvSpec s = image();
  s.reverse_window = true;
  s.stride = {2, 2};
  check(finished(s));
}

TEST_CASE("the gradient of a kernel: a window as large as the image") {
  ConvSpec s = image(8, 24);
  s.batch = 16;
  s.window = {9, 11};
  s.low = s.high = {1, 1};
  check(finished(s));
  s.window = {5, 5};  // of a strided convolution
  s.rhs_dilation = {2, 2};
  check(finished(s, Order::features_first));
  s.batch_groups = 4;
  check(finished(s));
  s.batch_groups = 8;
  s.out_features = 8;
  check(finished(s));
}

TEST_CASE("no spatial dimensions: a product of matrices") {
  ConvSpec s = image();
  s.in = s.window = {};
  check(finished([&] {
    ConvSpec t = s;
    t.stride = t.low = {};
    return t;
  }()));
}

TEST_CASE("empty convolutions give nothing or zeros") {
  ConvSpec s = image(0, 4);
  check(finished(s));
  s = image(4, 0);
  CHECK(make_convolution(finished(s))->run(nullptr, nullptr, nullptr, nullptr));
  s = image();
  s.in = {0, 5};
  s.low = s.high = {2, 2};
  check(finished(s));
}

TEST_CASE("what there is no fast code for is refused") {
  ConvSpec s = image();
  s.low = {-1, 0};
  s.stride = {2, 2};
  CHECK_FALSE(can_convolve(finished(s)));
  s = image();
  s.dtype = Dtype::f64;
  CHECK_FALSE(can_convolve(finished(s)));
  CHECK_THROWS_AS(make_convolution(finished(s)), RuntimeError);
  s = image();
  s.in = s.window = Ints(4, 3);
  CHECK_FALSE(can_convolve(finished(s)));
  s = image();
  s.stride = s.lhs_dilation = {2, 2};
  CHECK_FALSE(can_convolve(finished(s)));
}

TEST_CASE("bits of convolutions do not depend on the number of threads") {
  std::vector<ConvSpec> specs(3, image(32, 48));
  specs[0].low = specs[0].high = {1, 1};
  specs[1].lhs_dilation = {2, 2};
  specs[1].reverse_window = true;
  specs[1].low = specs[1].high = {1, 1};
  specs[2].batch = 24;
  specs[2].window = {9, 11};
  specs[2].low = specs[2].high = {1, 1};
  for (const ConvSpec& unfinished : specs) {
    const ConvSpec s = finished(unfinished);
    for (const auto make : {make_convolution, make_conv_products}) {
      Problem one(s);
      one.run(*make(s, 1));
      for (const int threads : {2, 5}) {
        Problem p(s);
        p.run(*make(s, threads));
        CHECK(p.out == one.out);
      }
    }
  }
}

TEST_CASE("one convolution runs in many threads at once") {
  ConvSpec s = image();
  s.low = s.high = {1, 1};
  s = finished(s);
  const auto convolution = make_convolution(s, 2);
  Problem reference(s);
  reference.run(*convolution);
  std::vector<int> right(5);
  std::vector<std::thread> threads;
  for (int& ok : right) {
    threads.emplace_back([&] {
      Problem p(s);
      for (int i = 0; i < 10; ++i) p.run(*convolution);
      ok = p.out == reference.out ? 1 : 0;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const int ok : right) CHECK(ok == 1);
}

}  // namespace
}  // namespace reprise::codegen
