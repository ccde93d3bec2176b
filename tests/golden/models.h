// The functions that the golden programs call, one traced operation per statement.
#pragma once

#include "golden/cases.h"

namespace golden {

inline Array g(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
inline Array f3layers(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = g(W2, x);
  x = g(W3, x);
  return x;
}
using Params = std::vector<Array>;
inline Array predict(Params params, Array x) {
  for (std::size_t i = 0; i + 1 < params.size(); ++i) x = g(params[i], x);
  return rp::dot(params.back(), x);
}
inline Array predict_named(Params params, Array x) {
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
inline Array dense(Array x, Array W, Array b) {
  Array y = rp::dot(x, W);
  return y + b;
}
inline Array relu0(Array x) { return rp::maximum(x, 0.); }
inline Array mlp(Array x, Array W1, Array b1, Array W2, Array b2) {
  Array h = dense(x, W1, b1);
  h = relu0(h);
  return dense(h, W2, b2);
}
inline Array softmax0(Array s) {
  Array top = rp::max(s, -1, true);
  top = rp::stop_gradient(top);
  Array e = rp::exp(s - top);
  Array total = rp::sum(e, -1, true);
  return e / total;
}
inline Array attention(Array x, Array Wq, Array Wk, Array Wv) {
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

inline Array named3(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = rp::checkpoint_name(x, "a");
  x = g(W2, x);
  x = rp::checkpoint_name(x, "b");
  x = g(W3, x);
  return rp::checkpoint_name(x, "c");
}
inline Array mlp_named(Array x, Array W1, Array b1, Array W2, Array b2) {
  Array h = dense(x, W1, b1);
  h = rp::checkpoint_name(h, "pre");
  h = relu0(h);
  h = rp::checkpoint_name(h, "act");
  h = dense(h, W2, b2);
  return rp::checkpoint_name(h, "out");
}
inline Array norm(Array x, Array gain, Array bias) {
  const double n = static_cast<double>(x.shape(-1));
  Array total = rp::sum(x, -1, true);
  Array m = total / n;
  Array c = x - m;
  Array squares = c * c;
  Array square_total = rp::sum(squares, -1, true);
  Array v = square_total / n;
  Array safe = v + 1e-6;
  Array scale = rp::lax::rsqrt(safe);
  Array y = c * scale;
  y = y * gain;
  return y + bias;
}

}  // namespace golden
