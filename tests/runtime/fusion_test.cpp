// Which equations share a kernel or a product changes no bit.
#include "../../bench/workloads.h"
#include "runtime/threads.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

namespace {

std::vector<std::vector<double>> numbers_of(const Arrays& arrays) {
  std::vector<std::vector<double>> out;
  for (const Array& a : arrays) out.push_back(a.to_vector<double>());
  return out;
}

// Compiled with everything, without each kind of fusion, and with other numbers of threads.
template <class F, class... Args>
void check_bits(const F& f, const Args&... args) {
  const auto expected = numbers_of(rp::tree_leaves(rp::jit(f)(args...)));
  for (const char* pass : {"fuse", "epilogue", "relay", "fuse,epilogue,relay,in_place"}) {
    INFO(std::string(pass));
    const WithoutPass without(pass);
    CHECK(numbers_of(rp::tree_leaves(rp::jit(f)(args...))) == expected);
  }
  const int before = rp::num_threads();
  for (const int threads : {1, 2, 5}) {
    rp::set_num_threads(threads);
    CHECK(numbers_of(rp::tree_leaves(rp::jit(f)(args...))) == expected);
  }
  rp::set_num_threads(before);
}

Array normal(int seed, const rp::Shape& shape) {
  return rp::random::normal(rp::random::key(seed), shape);
}

template <class F, class... Args>
bool compiles_to(const char* step, const F& f, const Args&... args) {
  return rp::jit(f).lower(args...).compile().as_text().find(step) != std::string::npos;
}

struct CheckBits {
  template <class D, class F, class... A>
  void operator()(const std::string& workload, const std::string& mode, const D&, const F& loss,
                  const A&... args) const {
    INFO(workload, " ", mode);
    check_bits(rp::value_and_grad(loss), args...);
  }
};

}  // namespace

TEST_CASE("sums and the kernels around them have the same bits fused and alone") {
  for (const rp::Shape& shape : {rp::Shape{37, 53}, {1, 1000}, {1000, 1}, {129, 640}, {3, 20000}}) {
    INFO(rp::to_string(rp::Type{rp::float32, shape}));
    const Array x = normal(1, shape);
    check_bits([](Array v) { return rp::nn::softmax(v * 0.125f, -1); }, x);
    check_bits(
        [](Array v) { return rp::sum(rp::tanh(v)) + rp::sum(rp::sum(rp::exp(v), 1) * 0.5f); }, x);
    check_bits(
        [](Array v) {
          return std::pair{rp::sum(rp::sin(v), 0), rp::max(rp::sin(v), 1)};
        },
        x);
    const auto normed = [](Array v) {
      const Array centred = v - rp::mean(v, -1, true);
      return rp::sum(centred * rp::lax::rsqrt(rp::mean(centred * centred, -1, true) + 1e-6f) *
                     rp::cos(v));
    };
    check_bits(rp::value_and_grad(normed), x);
  }
}

TEST_CASE("without fusion every equation is a kernel") {
  const auto f = [](Array v) { return rp::exp(rp::sin(v)) + 1.0f; };
  const Array x = normal(1, {10});
  CHECK(compiles_to("kernel [sin exp add]", f, x));
  const WithoutPass without("fuse");
  CHECK(compiles_to("kernel [sin]", f, x));
  CHECK(compiles_to("kernel [exp]", f, x));
}

TEST_CASE("every workload has the same bits with every fusion off") {
  bench::Sizes small;
  small.gpt = {.layers = 2, .width = 64, .heads = 4, .length = 32, .batch = 2, .vocabulary = 96};
  small.mlp_layers = 3;
  small.mlp_width = 144;
  small.mlp_batch = 65;
  small.chain_side = 65;
  small.scan_length = 16;
  small.scan_side = 24;
  small.deep = {16};
  const CheckBits check;
  for (const char* name : bench::workload_names) CHECK(bench::visit_workload(name, check, small));
}

TEST_CASE("a row is added by the product that it follows") {
  const auto dense = [](Array x, Array w, Array b) { return rp::matmul(x, w) + b; };
  for (const rp::Shape& rows : {rp::Shape{200}, {7, 31}, {1025}}) {
    rp::Shape shape = rows;
    shape.push_back(300);
    const Array x = normal(1, shape), w = normal(2, {300, 177}), b = normal(3, {177});
    CHECK(compiles_to("matmul + row", dense, x, w, b));
    check_bits(dense, x, w, b);
  }
  // Not where the product is wanted alone, where the row is a column, or where it is made later.
  const Array x = normal(1, {256, 256}), b = normal(3, {256});
  const auto both = [](Array v, Array row) {
    const Array product = rp::matmul(v, v);
    return std::pair{product, product + row};
  };
  const auto column = [](Array v, Array row) {
    return rp::matmul(v, v) + rp::reshape(row, {256, 1});
  };
  const auto late = [](Array v, Array row) {
    const Array product = rp::matmul(v, v);
    return product + rp::matmul(row, rp::sin(v));
  };
  check_bits(both, x, b);
  check_bits(column, x, b);
  check_bits(late, x, b);
  CHECK_FALSE(compiles_to("matmul + row", column, x, b));
  CHECK_FALSE(compiles_to("matmul + row", both, x, b));
}

TEST_CASE("a sum that ends with a product is added by it, in its place") {
  // Large products by the library, small ones by our own tiles.
  for (const std::int64_t side : {32, 256}) {
    INFO(side);
    const auto f = [](Array x, Array y) { return rp::matmul(x, y) + rp::sin(x); };
    const Array x = normal(1, {side, side}), y = normal(2, {side, side});
    check_bits(f, x, y);
    const auto squares = [](Array a, Array b) {
      const Array left = rp::matmul(a, b);
      return rp::matmul(b, a) + left;
    };
    CHECK(compiles_to("matmul + result", squares, x, y));
    check_bits(squares, x, y);
  }
}

TEST_CASE("gradients of a loop's weights are added up in place") {
  constexpr std::int64_t width = 192;
  const auto loss = [](Array w, Array b, Array xs) {
    const auto step = [&](Array h, Array x) {
      const Array next = rp::tanh(rp::matmul(h, w) + x + b);
      return std::pair{next, rp::sum(next)};
    };
    return rp::sum(rp::scan(step, rp::zeros({48, width}), xs).second);
  };
  const Array w = normal(1, {width, width}) * 0.05f, b = normal(2, {width}),
              xs = normal(3, {12, 48, width});
  const auto gradients = rp::grad<0, 1>(loss);
  CHECK(compiles_to("matmul + result", gradients, w, b, xs));
  check_bits(gradients, w, b, xs);
}

TEST_CASE("many small products have the same bits with a row or a sum on the way out") {
  for (const std::int64_t k : {32, 600}) {
    INFO(k);
    const Array a = normal(1, {8, 64, k}), b = normal(2, {8, k, 64}), row = normal(3, {64}),
                x = normal(4, {8, 64, 64});
    check_bits([](Array u, Array v, Array r) { return rp::matmul(u, v) + r; }, a, b, row);
    check_bits([](Array u, Array v, Array w) { return rp::sin(w) + rp::matmul(u, v); }, a, b, x);
  }
}
