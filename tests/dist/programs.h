// The programs of golden shard_map_cases.json, one traced operation per statement.
#pragma once

#include <reprise/dist.h>
#include <reprise/reprise.h>

#include <functional>
#include <string>
#include <vector>

namespace programs {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;
using P = rp::PartitionSpec;
using Program = std::function<Array(const Arrays&)>;

inline rp::Mesh line() { return rp::Mesh({{"x", 4}}); }
inline rp::Mesh grid() { return rp::Mesh({{"data", 2}, {"model", 2}}); }
inline rp::Policy gathered_names() {
  return rp::checkpoint_policies::save_only_these_names("gathered");
}

inline Array psum_squares(const Arrays& a) {
  auto f = [](Array x) {
    Array s = x * x;
    s = rp::sum(s);
    return rp::lax::psum(s, "x");
  };
  return rp::shard_map(f, line(), P("x"), P())(a[0]);
}

inline Array data_parallel(const Arrays& a) {
  auto step = [](Array w, Array b, Array x, Array y) {
    Array h = rp::matmul(x, w);
    h = h + b;
    h = rp::tanh(h);
    Array d = h - y;
    d = rp::power(d, 2);
    d = rp::mean(d);
    return rp::lax::pmean(d, "x");
  };
  return rp::shard_map(step, line(), {P(), P(), P("x"), P("x")}, P())(a[0], a[1], a[2], a[3]);
}

template <class Wrap>
Array fsdp(const Wrap& wrap, const Arrays& a) {
  auto block = wrap([](Array w, Array x) {
    w = rp::lax::all_gather(w, "x", {.tiled = true});
    w = rp::checkpoint_name(w, "gathered");
    Array y = rp::matmul(x, w);
    return rp::sin(y);
  });
  auto model = [block](Array w1, Array w2, Array w3, Array w4, Array x) {
    x = block(w1, x);
    x = block(w2, x);
    x = block(w3, x);
    return block(w4, x);
  };
  return rp::shard_map(model, line(), P("x"), P("x"))(a[0], a[1], a[2], a[3], a[4]);
}
inline Array fsdp_plain(const Arrays& a) {
  return fsdp([](auto f) { return f; }, a);
}
inline Array fsdp_remat(const Arrays& a) {
  return fsdp([](auto f) { return rp::checkpoint(f); }, a);
}
inline Array fsdp_remat_names(const Arrays& a) {
  return fsdp([](auto f) { return rp::checkpoint(f, {.policy = gathered_names()}); }, a);
}
inline Array fsdp_remat_dots(const Arrays& a) {
  return fsdp(
      [](auto f) { return rp::checkpoint(f, {.policy = rp::checkpoint_policies::dots_saveable}); },
      a);
}

inline Array scatter_sum(const Arrays& a) {
  auto f = [](Array x) {
    x = rp::cos(x);
    x = rp::lax::psum_scatter(x, "x", {.scatter_dimension = 0, .tiled = true});
    return rp::sin(x);
  };
  return rp::shard_map(f, line(), P(rp::none, "x"), P("x"))(a[0]);
}

inline Array halo(const Arrays& a) {
  auto step = [](Array x) {
    const std::int64_t n = rp::lax::axis_size("x");
    std::vector<std::pair<std::int64_t, std::int64_t>> right, left;
    for (std::int64_t i = 0; i < n; ++i) {
      right.emplace_back(i, (i + 1) % n);
      left.emplace_back((i + 1) % n, i);
    }
    Array last = rp::lax::slice(x, {3, 0}, {4, 3});
    last = rp::lax::ppermute(last, "x", right);
    Array first = rp::lax::slice(x, {0, 0}, {1, 3});
    first = rp::lax::ppermute(first, "x", left);
    Array padded = rp::concatenate({last, x, first});
    Array before = rp::lax::slice(padded, {0, 0}, {4, 3});
    Array after = rp::lax::slice(padded, {2, 0}, {6, 3});
    Array both = before + after;
    Array here = rp::lax::slice(padded, {1, 0}, {5, 3});
    here = 2 * here;
    Array change = both - here;
    return rp::sin(change);
  };
  return rp::shard_map(step, line(), P("x"), P("x"))(a[0]);
}

inline Array sequence_to_heads(const Arrays& a) {
  auto f = [](Array x) {
    x = rp::sin(x);
    x = rp::lax::all_to_all(x, "x", 1, 0, {.tiled = true});
    return rp::tanh(x);
  };
  return rp::shard_map(f, line(), P("x"), P(rp::none, "x"))(a[0]);
}

inline Array tensor_block(Array w1, Array w2, Array x) {
  Array h = rp::matmul(x, w1);
  h = rp::tanh(h);
  h = rp::matmul(h, w2);
  return rp::lax::psum(h, "x");
}
inline Array tensor_parallel(const Arrays& a) {
  return rp::shard_map(tensor_block, line(), {P(rp::none, "x"), P("x"), P()}, P())(a[0], a[1],
                                                                                   a[2]);
}
inline Array tensor_parallel_remat(const Arrays& a) {
  auto block = [](Array w1, Array w2, Array x) {
    Array y = tensor_block(w1, w2, x);
    return rp::checkpoint_name(y, "summed");
  };
  auto model = [block](Array w1, Array w2, Array x) {
    const auto policy = rp::checkpoint_policies::save_only_these_names("summed");
    x = rp::checkpoint(block, {.policy = policy})(w1, w2, x);
    return rp::checkpoint(block)(w1, w2, x);
  };
  return rp::shard_map(model, line(), {P(rp::none, "x"), P("x"), P()}, P())(a[0], a[1], a[2]);
}

inline Array two_by_two(const Arrays& a) {
  auto step = [](Array w1, Array w2, Array x, Array y) {
    Array h = rp::matmul(x, w1);
    h = rp::tanh(h);
    Array o = rp::matmul(h, w2);
    o = rp::lax::psum(o, "model");
    Array d = o - y;
    d = rp::power(d, 2);
    d = rp::mean(d);
    return rp::lax::pmean(d, "data");
  };
  return rp::shard_map(step, grid(), {P(rp::none, "model"), P("model"), P("data"), P("data")}, P())(
      a[0], a[1], a[2], a[3]);
}

inline Array scan_of_sums(const Arrays& a) {
  auto step = [](Array x) {
    auto body = [](Array c, rp::None) {
      Array s = rp::sin(c);
      Array all = rp::lax::psum(c, "x");
      all = 0.1 * all;
      c = s + all;
      Array y = rp::sum(c);
      return std::pair(c, y);
    };
    return rp::scan(body, x, rp::none, {.length = 3}).first;
  };
  return rp::shard_map(step, line(), P("x"), P("x"))(a[0]);
}

inline Array scan_of_remat_gathers(const Arrays& a) {
  auto step = [](Array ws, Array x) {
    auto body = rp::checkpoint(
        [](Array h, Array w) {
          w = rp::lax::all_gather(w, "x", {.tiled = true});
          w = rp::checkpoint_name(w, "gathered");
          h = rp::matmul(h, w);
          h = rp::sin(h);
          return std::pair(h, rp::none);
        },
        {.policy = gathered_names()});
    return rp::scan(body, x, ws).first;
  };
  return rp::shard_map(step, line(), {P(rp::none, "x"), P("x")}, P("x"))(a[0], a[1]);
}

inline Array vmap_inside(const Arrays& a) {
  auto f = [](Array x) {
    auto row = [](Array r) {
      Array s = rp::sin(r);
      Array e = rp::exp(r);
      e = rp::sum(e);
      e = rp::lax::psum(e, "x");
      return s / e;
    };
    return rp::vmap(row)(x);
  };
  return rp::shard_map(f, line(), P(rp::none, "x"), P(rp::none, "x"))(a[0]);
}

inline Array rank_mask(const Arrays& a) {
  auto f = [](Array x) {
    Array i = rp::lax::axis_index("x");
    i = i % 2;
    Array even = rp::equal(i, 0);
    Array s = rp::sin(x);
    Array c = rp::cos(x);
    return rp::where(even, s, c);
  };
  return rp::shard_map(f, line(), P("x"), P("x"))(a[0]);
}

inline Array sharded_softmax(const Arrays& a) {
  auto step = [](Array x) {
    Array m = rp::max(x, 1, true);
    m = rp::stop_gradient(m);
    m = rp::lax::pmax(m, "x");
    Array e = x - m;
    e = rp::exp(e);
    Array s = rp::sum(e, 1, true);
    s = rp::lax::psum(s, "x");
    return e / s;
  };
  return rp::shard_map(step, line(), P(rp::none, "x"), P(rp::none, "x"))(a[0]);
}

inline Array checkpoint_around(const Arrays& a) {
  auto f = rp::shard_map(
      [](Array w, Array x) {
        Array y = rp::matmul(x, w);
        y = rp::lax::psum(y, "x");
        return rp::sin(y);
      },
      line(), {P("x"), P(rp::none, "x")}, P());
  auto g = [f](Array w, Array x) {
    Array y = f(w, x);
    return rp::cos(y);
  };
  return rp::checkpoint(g, {.policy = rp::checkpoint_policies::dots_saveable})(a[0], a[1]);
}

inline Array ring_attention(const Arrays& a) {
  auto step = [](Array q, Array k, Array v) {
    const std::int64_t n = rp::lax::axis_size("x");
    std::vector<std::pair<std::int64_t, std::int64_t>> turn;
    for (std::int64_t i = 0; i < n; ++i) turn.emplace_back(i, (i + 1) % n);
    Array o = 0 * q;
    Array column = q(rp::all, 0);
    Array total = 0 * column;
    using Carry = std::tuple<Array, Array, Array, Array>;
    auto body = [q, turn](Carry c, rp::None) {
      auto [out, sums, ks, vs] = c;
      Array turned = rp::transpose(ks);
      Array s = rp::matmul(q, turned);
      s = rp::exp(s);
      Array more = rp::matmul(s, vs);
      out = out + more;
      Array row = rp::sum(s, 1);
      sums = sums + row;
      ks = rp::lax::ppermute(ks, "x", turn);
      vs = rp::lax::ppermute(vs, "x", turn);
      return std::pair(Carry(out, sums, ks, vs), rp::none);
    };
    const Carry last = rp::scan(body, Carry(o, total, k, v), rp::none, {.length = n}).first;
    Array below = std::get<1>(last)(rp::all, rp::newaxis);
    return std::get<0>(last) / below;
  };
  return rp::shard_map(step, line(), P("x"), P("x"))(a[0], a[1], a[2]);
}

inline const std::vector<std::pair<std::string, Program>>& all() {
  static const std::vector<std::pair<std::string, Program>> list{
      {"psum_squares", psum_squares},
      {"data_parallel", data_parallel},
      {"fsdp_plain", fsdp_plain},
      {"fsdp_remat", fsdp_remat},
      {"fsdp_remat_names", fsdp_remat_names},
      {"fsdp_remat_dots", fsdp_remat_dots},
      {"scatter_sum", scatter_sum},
      {"halo", halo},
      {"sequence_to_heads", sequence_to_heads},
      {"tensor_parallel", tensor_parallel},
      {"tensor_parallel_remat", tensor_parallel_remat},
      {"two_by_two", two_by_two},
      {"scan_of_sums", scan_of_sums},
      {"scan_of_remat_gathers", scan_of_remat_gathers},
      {"vmap_inside", vmap_inside},
      {"rank_mask", rank_mask},
      {"sharded_softmax", sharded_softmax},
      {"checkpoint_around", checkpoint_around},
      {"ring_attention", ring_attention}};
  return list;
}

}  // namespace programs
