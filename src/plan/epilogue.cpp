#include "plan/epilogue.h"

#include "ops/records.h"
#include "plan/dot.h"
#include "plan/matmul_spec.h"

#include <algorithm>
#include <optional>

namespace reprise::plan {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

// A kernel that adds two operands, stores the sum and does nothing else.
struct Sum {
  const Load *left, *right;
};
std::optional<Sum> sum_of(const Kernel& k) {
  if (k.stores.size() != 1 || k.loads.size() != 2 || k.has_row_reduce || k.has_column_reduce)
    return std::nullopt;
  const Node* sum = nullptr;
  for (const Node& n : k.nodes) {
    if (n.kind == NodeKind::load || n.eqn == nullptr) continue;
    if (sum != nullptr || (n.eqn->prim != &add_p && n.eqn->prim != &add_any_p)) return std::nullopt;
    sum = &n;
  }
  if (sum == nullptr || sum->in.size() != 2) return std::nullopt;
  const auto load = [&](std::size_t n) {
    while (k.nodes[n].kind == NodeKind::op && k.nodes[n].eqn == nullptr) n = k.nodes[n].in[0];
    return k.nodes[n].kind == NodeKind::load ? &k.loads[k.nodes[n].load] : nullptr;
  };
  const Sum out{load(sum->in[0]), load(sum->in[1])};
  const auto is_memory = [](const Load* l) { return l != nullptr && l->source == Source::memory; };
  if (!is_memory(out.left) || !is_memory(out.right) || out.left == out.right) return std::nullopt;
  return out;
}

// Steps that write and read every value.
struct Uses {
  std::vector<std::size_t> writer, writers, readers, last_read;
  explicit Uses(const Schedule& s)
      : writer(s.types.size(), none),
        writers(s.types.size(), 0),
        readers(s.types.size(), 0),
        last_read(s.types.size(), none) {
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      for (Var v : s.steps[i].writes) {
        writer[at(v)] = i;
        ++writers[at(v)];
      }
      for (Var v : s.steps[i].reads) {
        ++readers[at(v)];
        last_read[at(v)] = i;
      }
    }
    for (const View& v : s.outputs) {
      if (v.root >= 0) ++readers[at(v.root)];
    }
  }
};

class Fuser {
 public:
  Fuser(Schedule& s, const Capabilities& can, bool is_body)
      : s_(s), can_(can), is_body_(is_body), uses_(s), before_(s.steps.size()) {
    is_argument_.resize(s.types.size(), false);
    for (Var v : s.program->in) is_argument_[at(v)] = true;
  }

  void run() {
    std::vector<bool> is_gone(s_.steps.size(), false);
    for (std::size_t j = 0; j < s_.steps.size(); ++j) {
      const auto* k = std::get_if<Kernel>(&s_.steps[j].what);
      const auto sum = k != nullptr ? sum_of(*k) : std::nullopt;
      if (!sum) continue;
      is_gone[j] = fuse(j, *k, *sum->left, *sum->right) || fuse(j, *k, *sum->right, *sum->left);
    }
    std::vector<Step> steps;
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      if (before_[i]) steps.push_back(std::move(*before_[i]));
      if (!is_gone[i]) steps.push_back(std::move(s_.steps[i]));
    }
    s_.steps = std::move(steps);
  }

 private:
  // The kernel of step j adds `other` to `product`.
  bool fuse(std::size_t j, const Kernel& k, const Load& product, const Load& other) {
    const std::size_t i = uses_.writer[at(product.root)];
    if (i == none || i >= j || uses_.writers[at(product.root)] != 1 ||
        uses_.readers[at(product.root)] != 1)
      return false;
    const auto* dot = std::get_if<DotStep>(&s_.steps[i].what);
    if (dot == nullptr || dot->has_bias || dot->accumulates) return false;
    if (k.stores[0].dtype != product.dtype || other.dtype != product.dtype ||
        !is_whole(k, k.stores[0]))
      return false;
    const auto result = result_of(i, k, product);
    if (!result || !is_ready(other.root, i)) return false;
    return add_row(i, k, *result, other) || add_result(i, j, k, *result, other);
  }
  // The product written where the kernel would write it, which may read it transposed.
  std::optional<View> result_of(std::size_t i, const Kernel& k, const Load& product) const {
    View v = s_.steps[i].results[0];
    if (v.offset != 0 || product.offset != 0 || k.size() != s_.types[at(product.root)].size() ||
        element_count(v.shape) != k.size())
      return std::nullopt;
    const Ints to = row_major_strides(k.domain);
    for (std::size_t d = 0; d < v.shape.size(); ++d) {
      if (v.shape[d] == 1) continue;
      std::size_t loop = 0;
      while (loop < k.domain.size() &&
             (product.strides[loop] != v.strides[d] || k.domain[loop] != v.shape[d]))
        ++loop;
      if (loop < k.domain.size())
        v.strides[d] = to[loop];
      else if (!is_whole(k, product))
        return std::nullopt;
    }
    v.root = k.stores[0].root;
    const auto& dot = std::get<DotStep>(s_.steps[i].what);
    if (!dot_result(*s_.program, *dot.eqn, v)) return std::nullopt;
    return v;
  }
  // Every element of a value, in its own order.
  template <class Access>
  bool is_whole(const Kernel& k, const Access& a) const {
    return a.offset == 0 && a.strides == row_major_strides(k.domain) &&
           k.size() == s_.types[at(a.root)].size();
  }
  bool is_ready(Var v, std::size_t step) const {
    return is_argument_[at(v)] || (uses_.writer[at(v)] != none && uses_.writer[at(v)] < step);
  }

  bool add_row(std::size_t i, const Kernel& k, const View& result, const Load& row) {
    Step step = s_.steps[i];
    std::get<DotStep>(step.what).has_bias = true;
    replace_result(step, result, row.root);
    const MatmulSpec spec = matmul_spec(s_, step);
    if (!takes_sums(spec) || spec.c_strides.back() != 1 || !is_row(k, row, spec.n) ||
        !can_.share_threads(spec))
      return false;
    step.operands.push_back({row.root, row.offset, {spec.n}, {1}});
    s_.steps[i] = std::move(step);
    return true;
  }
  // Something may be added before the result is rounded.
  bool takes_sums(const MatmulSpec& spec) const {
    return can_.tile(spec) || (spec.result == Dtype::f32 && can_.share_threads(spec));
  }
  // The same n neighbours at every row.
  static bool is_row(const Kernel& k, const Load& l, std::int64_t n) {
    std::int64_t size = 1;
    for (std::size_t d = k.domain.size(); d-- > 0; size *= k.domain[d]) {
      if (l.strides[d] != (size < n ? size : 0)) return false;
      if (size < n && size * k.domain[d] > n) return false;
    }
    return true;
  }

  // Arguments of a loop's body are updated in place where they are carried; other arguments stay as
  // they are.
  bool add_result(std::size_t i, std::size_t j, const Kernel& k, const View& result,
                  const Load& other) {
    const Var x = other.root;
    const bool ends =
        uses_.last_read[at(x)] == j && (!is_argument_[at(x)] || is_body_) && !is_output(x);
    const auto reads_before = [&](std::size_t step) {
      return std::find(s_.steps[step].reads.begin(), s_.steps[step].reads.end(), x) !=
             s_.steps[step].reads.end();
    };
    for (std::size_t step = i; step < j; ++step) {
      if (!ends || reads_before(step)) return false;
    }
    Step sum = s_.steps[i];
    std::get<DotStep>(sum.what).accumulates = true;
    replace_result(sum, result, result.root);
    const MatmulSpec spec = matmul_spec(s_, sum);
    if (!is_whole(k, other) || !takes_sums(spec) || before_[i]) return false;
    s_.steps[i] = std::move(sum);
    before_[i] = copy(k, other);
    return true;
  }
  bool is_output(Var v) const {
    return std::any_of(s_.outputs.begin(), s_.outputs.end(),
                       [&](const View& o) { return o.root == v; });
  }
  static void replace_result(Step& step, const View& result, Var read) {
    step.results[0] = result;
    step.writes = {result.root};
    if (std::find(step.reads.begin(), step.reads.end(), read) == step.reads.end())
      step.reads.push_back(read);
    std::sort(step.reads.begin(), step.reads.end());
  }
  // What the kernel stores becomes a copy of one operand.
  static Step copy(const Kernel& sum, const Load& from) {
    Kernel k;
    k.domain = sum.domain;
    k.loads = {from};
    Node load;
    load.kind = NodeKind::load;
    load.type = Type{from.dtype, {}};
    k.nodes = {load};
    k.stores = {sum.stores[0]};
    k.stores[0].node = 0;
    Step step;
    step.reads = {from.root};
    step.writes = {k.stores[0].root};
    step.what = std::move(k);
    return step;
  }

  Schedule& s_;
  const Capabilities& can_;
  bool is_body_;
  Uses uses_;
  std::vector<bool> is_argument_;
  std::vector<std::optional<Step>> before_;  // steps to be put before others
};

}  // namespace

Schedule with_epilogues(Schedule s, const Capabilities& can, bool is_body) {
  for (Step& step : s.steps) {
    auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) continue;
    for (auto& body : loop->bodies)
      body = std::make_shared<const Schedule>(with_epilogues(*body, can, true));
  }
  Fuser(s, can, is_body).run();
  return s;
}

}  // namespace reprise::plan
