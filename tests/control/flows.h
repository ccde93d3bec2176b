// Control flow twice: by the library, and by C++ statements on numbers, with the same bodies.
//
// A flow is a function of four parts: v, which loops carry and branches read; w, a constant of all
// bodies; k, which decides how often a loop runs and which branch is taken; xs, the rows of scans.
#pragma once

#include <reprise/reprise.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace flows {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

struct Parts {
  Array v, w, k, xs;  // f64[3], f64[], i32[], f64[4,3]
};
using Inner = std::function<Array(Parts)>;
using Step = std::function<Array(Array)>;
using IndexedStep = std::function<Array(Array, Array)>;
using ScanStep = std::function<std::pair<Array, Array>(Array, Array)>;

class Flow {
 public:
  virtual ~Flow() = default;
  virtual Array loop_while(const Step& more, const Step& step, Array init) const = 0;
  virtual Array fori(int upper, const IndexedStep& step, Array init) const = 0;
  virtual Array fori(const Array& upper, const IndexedStep& step, Array init) const = 0;
  virtual Array choose(const Array& pred, const Step& yes, const Step& no, Array x) const = 0;
  virtual Array choose(const Array& index, const std::vector<Step>& branches, Array x) const = 0;
  virtual std::pair<Array, Array> scan(const ScanStep& step, Array init, const Array& xs,
                                       bool reverse) const = 0;
};

class Library : public Flow {
 public:
  Array loop_while(const Step& more, const Step& step, Array init) const override {
    return rp::while_loop(more, step, init);
  }
  Array fori(int upper, const IndexedStep& step, Array init) const override {
    return rp::fori_loop(0, upper, step, init);
  }
  Array fori(const Array& upper, const IndexedStep& step, Array init) const override {
    return rp::fori_loop(Array(0), upper, step, init);
  }
  Array choose(const Array& pred, const Step& yes, const Step& no, Array x) const override {
    return rp::cond(pred, yes, no, x);
  }
  Array choose(const Array& index, const std::vector<Step>& branches, Array x) const override {
    return rp::switch_(index, branches, x);
  }
  std::pair<Array, Array> scan(const ScanStep& step, Array init, const Array& xs,
                               bool reverse) const override {
    return rp::scan(step, init, xs, {.reverse = reverse});
  }
};

class Statements : public Flow {
 public:
  Array loop_while(const Step& more, const Step& step, Array c) const override {
    while (more(c).item<bool>()) c = step(c);
    return c;
  }
  Array fori(int upper, const IndexedStep& step, Array c) const override {
    for (int i = 0; i < upper; ++i) c = step(Array(i), c);
    return c;
  }
  Array fori(const Array& upper, const IndexedStep& step, Array c) const override {
    return fori(upper.item<int>(), step, c);
  }
  Array choose(const Array& pred, const Step& yes, const Step& no, Array x) const override {
    return pred.item<bool>() ? yes(x) : no(x);
  }
  Array choose(const Array& index, const std::vector<Step>& branches, Array x) const override {
    const auto last = static_cast<int>(branches.size()) - 1;
    return branches[static_cast<std::size_t>(std::clamp(index.item<int>(), 0, last))](x);
  }
  std::pair<Array, Array> scan(const ScanStep& step, Array c, const Array& xs,
                               bool reverse) const override {
    const std::int64_t n = xs.shape(0);
    Arrays ys(static_cast<std::size_t>(n));
    for (std::int64_t s = 0; s < n; ++s) {
      const std::int64_t i = reverse ? n - 1 - s : s;
      std::tie(c, ys[static_cast<std::size_t>(i)]) = step(c, xs[i]);
    }
    return {c, rp::stack(ys)};
  }
};

// A way to run `inner` inside control flow. Values stay of order one, loops end.
struct Kind {
  std::string name;
  bool is_reversible;  // by reverse-mode derivatives
  std::function<Array(const Flow&, const Inner&, Parts)> apply;
};

inline Parts with(Parts p, Array v) {
  p.v = std::move(v);
  return p;
}

inline const std::vector<Kind>& kinds() {
  using std::pair;
  static const std::vector<Kind> all = {
      {"while", false,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto more = [p](Array c) { return rp::sum(c) < 3.0 + p.k; };
         const auto step = [p, inner](Array c) {
           return c + 0.3 + 0.1 * rp::tanh(inner(with(p, c)));
         };
         return flow.loop_while(more, step, p.v);
       }},
      {"fori", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto step = [p, inner](Array i, Array c) {
           return rp::sin(c + inner(with(p, c))) + 0.1 * i;
         };
         return flow.fori(3, step, p.v);
       }},
      {"fori to k", false,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto step = [p, inner](Array i, Array c) {
           return rp::sin(c + inner(with(p, c))) + 0.1 * i;
         };
         return flow.fori(p.k, step, p.v);
       }},
      {"cond by value", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto yes = [p, inner](Array c) { return inner(with(p, c)) + c; };
         const auto no = [p](Array c) { return rp::cos(c) * p.w; };
         return flow.choose(rp::sum(p.v) > p.w, yes, no, p.v);
       }},
      {"cond by k", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto yes = [](Array c) { return rp::full_like(c, 0.5); };
         const auto no = [p, inner](Array c) { return inner(with(p, c)) * p.w; };
         return flow.choose(p.k > 1, yes, no, p.v);
       }},
      {"switch", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const std::vector<Step> branches = {[p](Array c) { return c * p.w; },
                                             [p, inner](Array c) { return inner(with(p, c)) - c; },
                                             [p](Array c) { return rp::sin(c) + p.xs[0]; }};
         return flow.choose(p.k, branches, p.v);
       }},
      {"scan", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto step = [p, inner](Array c, Array x) {
           const Array next = rp::tanh(inner(with(p, c)) + x * p.w);
           return pair{next, c * x};
         };
         const auto [carry, ys] = flow.scan(step, p.v, p.xs, false);
         return carry + rp::mean(ys, 0);
       }},
      {"reverse scan", true,
       [](const Flow& flow, const Inner& inner, Parts p) {
         const auto step = [p, inner](Array c, Array x) {
           return pair{c * 0.5 + rp::sin(x), inner(with(p, x)) + c};
         };
         const auto [carry, ys] = flow.scan(step, p.v, p.xs, true);
         return carry * ys[0] + ys[2];
       }},
  };
  return all;
}

inline Array innermost(Parts p) { return rp::sin(p.v) * p.w; }

}  // namespace flows
