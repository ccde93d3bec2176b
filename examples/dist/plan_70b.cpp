// A plan on paper: the gradient step of a model of Llama-70B's shape, fully sharded on 64 ranks, from
// shapes alone. Nothing is allocated and nobody else is needed: what each rank would hold at most,
// and what it would get from the others, under three policies.
//
//   build/release/examples/dist/plan_70b
#include <reprise/reprise.h>
#include <reprise/shard_map.h>

#include <cmath>
#include <cstdio>

namespace rp = reprise;
using rp::Array;
using P = rp::PartitionSpec;

namespace {

constexpr std::int64_t ranks = 64, layers = 80, width = 8192, hidden = 28672, words = 32000;
constexpr std::int64_t heads = 64, kv_heads = 8, size = width / heads, tokens = 4096;

struct Layer {  // this rank's rows of each matrix
  Array q, k, v, o, gate, up, down;
};
struct Model {
  Layer layers;  // stacked
  Array words;
};

Array whole(const Array& part) {
  const Array all = rp::lax::all_gather(part, "data", {.tiled = true});
  return rp::checkpoint_name(all, "gathered");
}
Array normal(const Array& x) {
  const Array square = rp::mean(rp::square(x.astype(rp::float32)), -1, true);
  return x * rp::lax::rsqrt(square + 1e-5).astype(x.dtype());
}
Array attention(const Layer& l, const Array& x) {
  const Array q = rp::matmul(x, whole(l.q)).reshape({tokens, kv_heads, heads / kv_heads, size});
  const Array k = rp::matmul(x, whole(l.k)).reshape({tokens, kv_heads, size});
  const Array v = rp::matmul(x, whole(l.v)).reshape({tokens, kv_heads, size});
  const Array scores = rp::einsum("tkgs,uks->kgtu", q, k) / std::sqrt(static_cast<double>(size));
  const Array share = rp::nn::softmax(scores);
  const Array mixed = rp::einsum("kgtu,uks->tkgs", share, v).reshape({tokens, width});
  return rp::matmul(mixed, whole(l.o));
}
Array block(const Layer& l, Array x) {
  x = x + attention(l, normal(x));
  const Array h = normal(x);
  const Array gate = rp::nn::silu(rp::matmul(h, whole(l.gate)));
  const Array up = rp::matmul(h, whole(l.up));
  return x + rp::matmul(gate * up, whole(l.down));
}
auto loss_with(const rp::CheckpointOptions& options) {
  return [options](Model m, Array ids) {
    const Array table = whole(m.words);
    const Array x = rp::take(table, ids, 0);
    const auto body =
        rp::checkpoint([](Array h, Layer l) { return std::pair(block(l, h), rp::none); }, options);
    const Array last = rp::scan(body, x, m.layers).first;
    const Array logits = rp::matmul(normal(last), rp::transpose(table)).astype(rp::float32);
    return rp::lax::pmean(rp::mean(rp::nn::logsumexp(logits, -1)), "data");
  };
}

}  // namespace

int main() {
  const rp::AbstractMesh mesh({{"data", ranks}});
  const auto rows = [](std::int64_t from, std::int64_t to) {
    return rp::Type{rp::bfloat16, {layers, from / ranks, to}};
  };
  const auto like = [](const rp::Type& t) { return rp::detail::abstract_array(t); };
  const std::int64_t kv = kv_heads * size;
  const Model model{{like(rows(width, width)), like(rows(width, kv)), like(rows(width, kv)),
                     like(rows(width, width)), like(rows(width, hidden)), like(rows(width, hidden)),
                     like(rows(hidden, width))},
                    like({rp::bfloat16, {words / ranks, width}})};
  const P matrix(rp::none, "data");
  std::vector<P> own(7, matrix.local());
  own.push_back(P("data").local());

  std::printf("%-24s %16s %22s\n", "policy", "peak GB per rank", "GB communicated");
  const auto names = rp::checkpoint_policies::save_only_these_names("gathered");
  for (const auto& [name, options] :
       {std::pair<const char*, rp::CheckpointOptions>("nothing kept", {}),
        {"gathered weights kept", {.policy = names}},
        {"products kept", {.policy = rp::checkpoint_policies::dots_saveable}}}) {
    const auto loss = loss_with(options);
    const auto step = rp::shard_map([loss](Model m, Array ids) { return rp::grad(loss)(m, ids); },
                                    mesh, {own, P("data").local()}, own);
    const auto plan = rp::jit(step).lower(model, rp::Type{rp::int32, {tokens}}).compile();
    std::printf("%-24s %16.1f %22.1f\n", name,
                static_cast<double>(plan.memory_analysis().peak_bytes) / 1e9,
                plan.cost_analysis().bytes_communicated / 1e9);
  }
}
