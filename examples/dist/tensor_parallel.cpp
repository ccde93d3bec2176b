// Tensor parallel: the heads of attention and the hidden units of the network behind it are divided
// among the ranks; each half of a transformer block ends with one sum.
//
//   mpirun -np 4 build/release/examples/dist/tensor_parallel
#include "task.h"

using namespace task;

namespace {

constexpr std::int64_t heads = 4, size = 4;  // of a head; together the width

struct Transformer {
  Array q, k, v;   // heads x width x size
  Array o;         // heads x size x width
  Array up, down;  // width x hidden, hidden x width
};
Transformer weights() {
  return {0.3 * numbers({heads, width, size}, 31), 0.3 * numbers({heads, width, size}, 32),
          0.3 * numbers({heads, width, size}, 33), 0.3 * numbers({heads, size, width}, 34),
          0.2 * numbers({width, hidden}, 35),      0.1 * numbers({hidden, width}, 36)};
}

// The block on some of the heads and hidden units; `all` adds up what they give.
template <class Sum>
Array block(const Transformer& t, Array x, const Sum& all) {
  const Array q = rp::einsum("rw,hws->hrs", x, t.q);
  const Array k = rp::einsum("rw,hws->hrs", x, t.k);
  const Array v = rp::einsum("rw,hws->hrs", x, t.v);
  Array scores = rp::einsum("hrs,hts->hrt", q, k);
  scores = scores / std::sqrt(static_cast<double>(size));
  const Array e = rp::exp(scores);
  const Array share = e / rp::sum(e, -1, true);
  const Array mixed = rp::einsum("hrt,hts->hrs", share, v);
  x = x + all(rp::einsum("hrs,hsw->rw", mixed, t.o));
  Array h = rp::matmul(x, t.up);
  h = rp::tanh(h);
  return x + all(rp::matmul(h, t.down));
}
template <class Sum>
auto step_with(const Sum& all) {
  return [all](Transformer t, Array x, Array y) {
    const auto of = [&](Transformer at) {
      const Array d = block(at, x, all) - y;
      return rp::mean(rp::square(d));
    };
    const auto [value, grads] = rp::value_and_grad(of)(t);
    return std::pair(descend(t, grads), value);
  };
}
template <class Step>
std::vector<double> losses_of(const Step& step, Transformer t) {
  std::vector<double> losses;
  const Array x = inputs(), y = targets();
  for (int i = 0; i < steps; ++i) {
    const std::pair<Transformer, Array> next = step(t, x, y);
    t = next.first;
    losses.push_back(next.second.item<double>());
  }
  return losses;
}

}  // namespace

int main() {
  rp::dist::init();
  const rp::Mesh mesh({{"model", rp::dist::size()}});
  const auto wanted = losses_of(rp::jit(step_with([](Array a) { return a; })), weights());

  const P head("model"), column(rp::none, "model"), row("model");
  const std::vector<P> parts{head, head, head, head, column, row};
  std::vector<P> own;
  for (const P& p : parts) own.push_back(p.local());
  std::vector<P> results = own;
  results.push_back(P());  // the loss
  const auto summed = [](Array a) { return rp::lax::psum(a, "model"); };
  const auto step = rp::jit(rp::shard_map(step_with(summed), mesh, {own, P(), P()}, results));

  const rp::Arrays whole = rp::tree_leaves(weights());
  rp::Arrays mine;
  for (std::size_t i = 0; i < whole.size(); ++i)
    mine.push_back(rp::shard(whole[i], mesh, parts[i]));
  compare("tensor parallel", losses_of(step, rp::tree_unflatten(weights(), mine)), wanted);
}
