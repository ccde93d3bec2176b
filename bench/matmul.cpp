// Matrix products of a small GPT, in GFLOP/s: ours (products/matmul.h), and through every door of
// oneDNN: the bare matmul primitive, inner_product and dnnl_sgemm. The letters say how a, b and c
// are stored: n by rows, t by columns.
//   bench/matmul [threads]
#include "products/matmul.h"

#include "products/dnnl_api.h"
#include "products/dnnl_engine.h"
#include "runtime/threads.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace rp = reprise;
namespace cg = reprise::codegen;
using Ints = std::vector<std::int64_t>;

namespace {

// On one thread the processor's time counts, which other programs do not change.
double now() {
  if (rp::num_threads() == 1) {
    return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
  }
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

double best_seconds(const std::function<void()>& f) {
  f();
  double best = 1e300;
  const double end = now() + 0.15;
  for (int i = 0; i < 200 && now() < end; ++i) {
    const double before = now();
    f();
    best = std::min(best, now() - before);
  }
  return best;
}

struct Buffers {
  std::vector<float> a, b, c, bias;
  std::vector<char> scratch;
};

struct Shape {
  std::string name;
  cg::MatmulSpec spec;
  double flops() const {
    double n = 2.0 * static_cast<double>(spec.m) * static_cast<double>(spec.n) *
               static_cast<double>(spec.k);
    for (std::int64_t b : spec.batch) n *= static_cast<double>(b);
    return n;
  }
};

Shape plain(std::int64_t m, std::int64_t n, std::int64_t k, const char* orders) {
  cg::MatmulSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  const auto strides = [](std::int64_t rows, std::int64_t columns, char order) {
    return order == 't' ? Ints{1, rows} : Ints{columns, 1};
  };
  s.a_strides = strides(m, k, orders[0]);
  s.b_strides = strides(k, n, orders[1]);
  s.c_strides = strides(m, n, orders[2]);
  return {std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " " + orders,
          s};
}

Shape heads(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, Ints a, Ints b,
            Ints c) {
  cg::MatmulSpec s;
  s.batch = {4, 8};
  s.m = m;
  s.n = n;
  s.k = k;
  s.a_strides = std::move(a);
  s.b_strides = std::move(b);
  s.c_strides = std::move(c);
  return {name, s};
}

std::vector<Shape> shapes() {
  std::vector<Shape> out;
  const std::int64_t sizes[][3] = {{1024, 1536, 512}, {1024, 512, 512},  {1024, 2048, 512},
                                   {1024, 512, 2048}, {512, 1536, 1024}, {512, 512, 1024},
                                   {2048, 512, 1024}, {1024, 1024, 512}};
  for (const auto& z : sizes)
    for (const char* orders : {"nnn", "ntn", "tnn", "ttn", "nnt"})
      out.push_back(plain(z[0], z[1], z[2], orders));
  const std::int64_t t = 256, d = 64, e = 512, p = t * t, q = t * e, f = 3 * e;
  out.push_back(heads("q k^T, dense", t, t, d, {8 * t * d, t * d, d, 1}, {8 * t * d, t * d, 1, d},
                      {8 * p, p, t, 1}));
  out.push_back(
      heads("q k^T, heads in rows", t, t, d, {q, d, e, 1}, {q, d, 1, e}, {8 * p, p, t, 1}));
  out.push_back(
      heads("q k^T, of one qkv", t, t, d, {t * f, d, f, 1}, {t * f, d, 1, f}, {8 * p, p, t, 1}));
  out.push_back(heads("p v, heads in rows", t, d, t, {8 * p, p, t, 1}, {q, d, e, 1}, {q, d, e, 1}));
  out.push_back(
      heads("p^T do, heads in rows", t, d, t, {8 * p, p, 1, t}, {q, d, e, 1}, {q, d, e, 1}));
  out.push_back(heads("p^T do, dense", t, d, t, {8 * p, p, 1, t}, {8 * t * d, t * d, d, 1},
                      {8 * t * d, t * d, d, 1}));
  return out;
}

// ------------------------------------------------------------------------------------------- doors
double ours(const Shape& s, Buffers& x, std::size_t& scratch) {
  const auto matmul = cg::make_matmul(s.spec, rp::num_threads());
  scratch = matmul->scratch_bytes();
  x.scratch.resize(scratch + 64);
  char* aligned = x.scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(x.scratch.data()) % 64);
  return best_seconds([&] { matmul->run(x.a.data(), x.b.data(), nullptr, x.c.data(), aligned); });
}

dnnl::memory::desc layout(const Ints& batch, std::int64_t rows, std::int64_t columns,
                          const Ints& strides) {
  Ints dims = batch;
  dims.insert(dims.end(), {rows, columns});
  return {dims, dnnl::memory::data_type::f32, strides};
}

double matmul_primitive(const Shape& shape, Buffers& x) {
  const cg::MatmulSpec& s = shape.spec;
  const dnnl::engine& engine = cg::dnnl_cpu();
  static dnnl::stream stream(engine);
  const auto a = layout(s.batch, s.m, s.k, s.a_strides), b = layout(s.batch, s.k, s.n, s.b_strides);
  const auto c = layout(s.batch, s.m, s.n, s.c_strides);
  const auto desc = cg::describe<dnnl::matmul>(engine, {}, a, b, c);
  if (std::strncmp(desc.impl_info_str(), "ref", 3) == 0) return 0;  // takes seconds
  const dnnl::matmul product(desc);
  return best_seconds([&] {
    product.execute(stream, {{DNNL_ARG_SRC, {a, engine, x.a.data()}},
                             {DNNL_ARG_WEIGHTS, {b, engine, x.b.data()}},
                             {DNNL_ARG_DST, {c, engine, x.c.data()}}});
  });
}

double inner_product(const Shape& shape, Buffers& x) {
  const cg::MatmulSpec& s = shape.spec;
  if (!s.batch.empty() || s.a_strides[1] != 1 || s.c_strides[1] != 1) return 0;
  const dnnl::engine& engine = cg::dnnl_cpu();
  static dnnl::stream stream(engine);
  const auto a = layout({}, s.m, s.k, s.a_strides);
  const auto b = layout({}, s.n, s.k, {s.b_strides[1], s.b_strides[0]});
  const auto c = layout({}, s.m, s.n, s.c_strides);
  const auto desc = cg::describe<dnnl::inner_product_forward>(
      engine, {}, dnnl::prop_kind::forward_inference, a, b, c);
  const dnnl::inner_product_forward product(desc);
  return best_seconds([&] {
    product.execute(stream, {{DNNL_ARG_SRC, {a, engine, x.a.data()}},
                             {DNNL_ARG_WEIGHTS, {b, engine, x.b.data()}},
                             {DNNL_ARG_DST, {c, engine, x.c.data()}}});
  });
}

double sgemm(const Shape& shape, Buffers& x) {
  const cg::MatmulSpec& s = shape.spec;
  if (!s.batch.empty()) return 0;
  const auto leads = [](const Ints& strides) { return std::max(strides[0], strides[1]); };
  const char a = s.a_strides[1] == 1 ? 'N' : 'T', b = s.b_strides[1] == 1 ? 'N' : 'T';
  const auto flip = [](char c) { return c == 'N' ? 'T' : 'N'; };
  return best_seconds([&] {
    if (s.c_strides[1] == 1) {
      dnnl_sgemm(a, b, s.m, s.n, s.k, 1, x.a.data(), leads(s.a_strides), x.b.data(),
                 leads(s.b_strides), 0, x.c.data(), leads(s.c_strides));
    } else {
      dnnl_sgemm(flip(b), flip(a), s.n, s.m, s.k, 1, x.b.data(), leads(s.b_strides), x.a.data(),
                 leads(s.a_strides), 0, x.c.data(), leads(s.c_strides));
    }
  });
}

void cell(double flops, double seconds) {
  if (seconds == 0) {
    std::printf(" %8s", "-");
  } else {
    std::printf(" %8.1f", flops / seconds * 1e-9);
  }
}

void print_call_cost() {
  rp::codegen::MatmulSpec s = plain(4, 4, 4, "nnn").spec;
  const auto matmul = cg::make_matmul(s, 1);
  alignas(64) static char scratch[1 << 16];
  float a[16] = {}, b[16] = {}, c[16];
  constexpr int calls = 1000;
  const double seconds = best_seconds([&] {
    for (int i = 0; i < calls; ++i) matmul->run(a, b, nullptr, c, scratch);
  });
  std::printf("one call of 4 x 4 x 4 on one thread: %.2f us\n", seconds / calls * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) rp::set_num_threads(std::atoi(argv[1]));
  print_call_cost();
  std::printf("%d threads, GFLOP/s\n%-26s %8s %8s %8s %8s %12s\n", rp::num_threads(), "m x n x k",
              "ours", "matmul", "inner", "sgemm", "scratch KiB");
  Buffers x;
  const std::size_t room = 4 * 1024 * 1024;
  for (auto* values : {&x.a, &x.b, &x.c}) {
    values->resize(room);
    for (std::size_t i = 0; i < room; ++i) (*values)[i] = static_cast<float>(i % 97) * 0.01f - 0.5f;
  }
  for (const Shape& s : shapes()) {
    std::size_t scratch = 0;
    std::printf("%-26s", s.name.c_str());
    cell(s.flops(), ours(s, x, scratch));
    cell(s.flops(), matmul_primitive(s, x));
    cell(s.flops(), inner_product(s, x));
    cell(s.flops(), sgemm(s, x));
    std::printf(" %12.1f\n", static_cast<double>(scratch) / 1024);
    std::fflush(stdout);
  }
}
