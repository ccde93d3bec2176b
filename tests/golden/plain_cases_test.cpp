// The golden programs without checkpoint.
#include "golden/cases.h"

namespace {

using namespace golden;

Array g(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
Array f3layers(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = g(W2, x);
  x = g(W3, x);
  return x;
}
using Params = std::vector<Array>;
Array predict(Params params, Array x) {
  for (std::size_t i = 0; i + 1 < params.size(); ++i) x = g(params[i], x);
  return rp::dot(params.back(), x);
}
Array predict_named(Params params, Array x) {
  for (std::size_t i = 0; i + 1 < params.size(); ++i) {
    x = g(params[i], x);
    x = rp::checkpoint_name(x, "layer" + std::to_string(i) + "_output");
  }
  return rp::dot(params.back(), x);
}
template <auto predict_fn>
Array loss_of(Params params, Array x, Array y) {
  Array p = predict_fn(params, x);
  Array d = p - y;
  return rp::sum(rp::power(d, 2));
}
Array dense(Array x, Array W, Array b) {
  Array y = rp::dot(x, W);
  return y + b;
}
Array relu0(Array x) { return rp::maximum(x, 0.); }
Array mlp(Array x, Array W1, Array b1, Array W2, Array b2) {
  Array h = dense(x, W1, b1);
  h = relu0(h);
  return dense(h, W2, b2);
}
Array softmax0(Array s) {
  Array top = rp::max(s, -1, true);
  top = rp::stop_gradient(top);
  Array e = rp::exp(s - top);
  Array total = rp::sum(e, -1, true);
  return e / total;
}
Array attention(Array x, Array Wq, Array Wk, Array Wv) {
  Array q = rp::matmul(x, Wq);
  Array k = rp::matmul(x, Wk);
  Array v = rp::matmul(x, Wv);
  Array s = rp::lax::dot_general(q, k, {{2}, {2}, {0}, {0}});
  Array a = softmax0(s * 0.5);
  return rp::lax::dot_general(a, v, {{2}, {1}, {0}, {0}});
}
template <int n>
Array chain(Array x) {
  for (int i = 0; i < n; ++i) x = rp::sin(x);
  return x;
}

}  // namespace

TEST_CASE("golden tutorial_f: three layers of sin(W x)") {
  const Json& c = case_named("tutorial_f");
  check_case("tutorial_f", f3layers, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0]);
}
TEST_CASE("golden tutorial_loss and tutorial_loss_named: parameters in a list") {
  const Json& c = case_named("tutorial_loss");
  check_case("tutorial_loss", loss_of<predict>, arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
  check_case("tutorial_loss_named", loss_of<predict_named>, arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
}
TEST_CASE("golden tutorial_chain8 and tutorial_chain16: chains of sin") {
  check_case("tutorial_chain8", chain<8>, arg(case_named("tutorial_chain8"), 0)[0]);
  check_case("tutorial_chain16", chain<16>, arg(case_named("tutorial_chain16"), 0)[0]);
}
TEST_CASE("golden tutorial_scan_layers: scan over stacked weights") {
  const Json& c = case_named("tutorial_scan_layers");
  auto net = [](Array x, Array all_W, Array all_b) {
    auto layer = [](Array h, std::pair<Array, Array> Wb) {
      Array y = rp::dot(h, Wb.first);
      y = y + Wb.second;
      return std::pair{rp::maximum(y, 0.), rp::none};
    };
    return rp::scan(layer, x, std::pair{all_W, all_b}).first;
  };
  check_case("tutorial_scan_layers", net, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0]);
}
TEST_CASE("golden mlp_none: dense layers with bias and relu") {
  const Json& c = case_named("mlp_none");
  check_case("mlp_none", mlp, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0], arg(c, 4)[0]);
}
TEST_CASE("golden attention_none: batched attention with a hand-written softmax") {
  const Json& c = case_named("attention_none");
  check_case("attention_none", attention, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0]);
}
TEST_CASE("golden scan_plain: a scan with carry and outputs") {
  const Json& c = case_named("scan_plain");
  auto f = [](Array carry, Array xs) {
    auto body = [](Array c0, Array x) {
      Array s = rp::sin(c0);
      return std::pair{s * x, c0};
    };
    return rp::scan(body, carry, xs);
  };
  check_case("scan_plain", f, arg(c, 0)[0], arg(c, 1)[0]);
}
TEST_CASE("golden fori_static: a loop with C++ bounds") {
  const Json& c = case_named("fori_static");
  auto f = [](Array x) { return rp::fori_loop(0, 3, [](Array, Array v) { return rp::sin(v); }, x); };
  check_case("fori_static", f, arg(c, 0)[0]);
}
