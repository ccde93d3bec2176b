// Sections g04, g09 and g13: policies, names, offloading, rounding of what is saved.
#include "golden/sections.h"

using namespace golden;

namespace {

const rp::CheckpointOptions everything{.policy = P::everything_saveable};
const Array one = 1.0;

// The function of g04: two products, two names.
Array dots_and_names(Array x, Array W) {
  Array y = rp::sin(x);
  Array z = rp::dot(W, y);
  Array n = rp::cos(z);
  n = rp::checkpoint_name(n, "n");
  Array m = rp::exp(n);
  m = rp::checkpoint_name(m, "m");
  Array ms = rp::stack({m, m});
  Array ys = rp::stack({y, y});
  Array b = rp::einsum("bi,bi->b", ms, ys);
  return rp::sum(b * 2.0);
}
const rp::Policy offload_dots = P::offload_dot_with_no_batch_dims("device", "pinned_host");
rp::Policy save_and_offload(const std::string& saved, const std::string& offloaded) {
  return P::save_and_offload_only_these_names({.names_which_can_be_saved = {saved},
                                               .names_which_can_be_offloaded = {offloaded},
                                               .offload_src = "device",
                                               .offload_dst = "pinned_host"});
}
struct NamedPolicy {
  std::string name, heading;
  rp::Policy policy;
};
const std::vector<NamedPolicy>& policies() {
  static const std::vector<NamedPolicy> all = {
      {"none", "None", {}},
      {"everything_saveable", "<function everything_saveable>", P::everything_saveable},
      {"nothing_saveable", "<function nothing_saveable>", P::nothing_saveable},
      {"dots_saveable", "DotsSaveable(only_if_no_batch_dims=False)", P::dots_saveable},
      {"checkpoint_dots", "DotsSaveable(only_if_no_batch_dims=False)", P::checkpoint_dots},
      {"dots_nb", "DotsSaveable(only_if_no_batch_dims=True)", P::dots_with_no_batch_dims_saveable},
      {"checkpoint_dots_nb", "DotsSaveable(only_if_no_batch_dims=True)",
       P::checkpoint_dots_with_no_batch_dims},
      {"only_n", "SaveOnlyTheseNames(saveable_names=frozenset({'n'}))",
       P::save_only_these_names("n")},
      {"any_but_n", "SaveAnyNamesButThese(names=frozenset({'n'}))",
       P::save_any_names_but_these("n")},
      {"any_but", "SaveAnyNamesButThese(names=frozenset())", P::save_any_names_but_these()},
      {"anything_except_n", "<function save_anything_except_these_names.<locals>.<lambda>>",
       P::save_anything_except_these_names("n")},
      {"both", "<function save_from_both_policies.<locals>.policy>",
       P::save_from_both_policies(P::dots_saveable, P::save_only_these_names("n"))},
      {"offload", "<function offload_dot_with_no_batch_dims.<locals>.policy>", offload_dots},
      {"so", "<function save_and_offload_only_these_names.<locals>.policy>",
       save_and_offload("n", "m")}};
  return all;
}

}  // namespace

TEST_CASE("g04: what every policy saves of one function, and how the policy is printed") {
  const Array x = rp::ones({3}), W = rp::ones({3, 3});
  Section plain("g04_policies", "");
  plain.traced(dots_and_names, x, W);
  plain.end();
  Section none("g04_policies", "no remat");
  none.residuals(dots_and_names, RP_ARGS(x, W));
  none.end();
  const std::regex address(" at 0xX+");
  for (const NamedPolicy& p : policies()) {
    if (p.policy.defined())
      CHECK(std::regex_replace(p.policy.jax_repr(), address, "") == p.heading);
    Section s("g04_policies", p.name + " | str: " + p.heading);
    s.residuals(rp::checkpoint(dots_and_names, {.policy = p.policy}), RP_ARGS(x, W));
    s.end();
  }
}

TEST_CASE("g04: the forward program and the gradient under policies") {
  const Array x = rp::ones({3}), W = rp::ones({3, 3});
  for (const NamedPolicy& p : policies()) {
    const std::string name = p.name;
    if (name == "nothing_saveable" || name.find("dots") != std::string::npos ||
        name.starts_with("any_"))
      continue;
    auto f = rp::checkpoint(dots_and_names, {.policy = p.policy});
    Section s("g04_policies", name);
    s.forward(f, x, W);
    s.traced(rp::grad<0, 1>(f), x, W);
    s.end();
  }
}

TEST_CASE("g09: products under vmap, batched products and convolutions under dots policies") {
  auto product = [](Array W, Array x) {
    Array y = rp::matmul(W, x);
    return rp::sin(y);
  };
  const Array x = rp::ones({4, 3}), W = rp::ones({3, 3});
  const rp::CheckpointOptions unbatched{.policy = P::dots_with_no_batch_dims_saveable};
  const rp::CheckpointOptions dots{.policy = P::dots_saveable};
  auto one_matrix = rp::vmap(rp::checkpoint(product, unbatched), {.in_axes = {std::nullopt, 0}});
  Section shared("g09_names_vmap_prevent_cse", "vmap unbatched W: dots_nb");
  shared.residuals(one_matrix, RP_ARGS(W, x));
  shared.end();
  const Array Wb = rp::ones({4, 3, 3});
  Section batched("g09_names_vmap_prevent_cse", "vmap batched W: dots_nb");
  batched.residuals(rp::vmap(rp::checkpoint(product, unbatched)), rp::arg("W", Wb), RP_ARGS(x));
  batched.end();
  Section all("g09_names_vmap_prevent_cse", "vmap batched W: dots");
  all.residuals(rp::vmap(rp::checkpoint(product, dots)), rp::arg("W", Wb), RP_ARGS(x));
  all.traced(rp::vmap(rp::checkpoint(product, dots)), Wb, x);
  all.end();
  auto convolution = [](Array a, Array k) {
    Array y = rp::lax::conv_general_dilated(a, k, {.padding = {{1, 1}, {1, 1}}});
    return rp::sin(y);
  };
  const Array image = rp::ones({1, 1, 4, 4}), k = rp::ones({1, 1, 3, 3});
  Section conv("g09_names_vmap_prevent_cse", "conv");
  conv.residuals(rp::checkpoint(convolution, dots), rp::arg("x", image), RP_ARGS(k));
  conv.line("-");
  conv.residuals(rp::checkpoint(convolution, unbatched), rp::arg("x", image), RP_ARGS(k));
  conv.end();
  const Array a = rp::ones({2, 3, 4});
  Section batch("g09_names_vmap_prevent_cse", "batch matmul / einsum / vdot / tensordot");
  for (const Array& b : {rp::ones({2, 4, 5}), rp::ones({4, 5})}) {
    batch.residuals(rp::checkpoint(product, unbatched), RP_ARGS(a, b));
  }
  batch.end();
}

TEST_CASE("g09: all but some names, a name with another reader, names of both policies, of trees") {
  auto named = [](Array x) {
    x = rp::sin(x);
    x = rp::checkpoint_name(x, "a");
    x = rp::cos(x);
    x = rp::checkpoint_name(x, "b");
    return rp::sin(x);
  };
  const Array x = 1.0;
  auto product = [](Array v) {
    Array a = v * v;
    a = rp::checkpoint_name(a, "a");
    a = a * 3.0;
    Array b = v + 1.0;
    b = rp::checkpoint_name(b, "b");
    return a * b;
  };
  const rp::CheckpointOptions except{.policy = P::save_anything_except_these_names("a")};
  Section names("g09_names_vmap_prevent_cse", "save_anything_except");
  names.residuals(named, RP_ARGS(x));
  names.line("-");
  names.residuals(rp::checkpoint(named, except), RP_ARGS(x));
  names.line("plain");
  names.residuals(product, RP_ARGS(x));
  names.line("except a");
  names.residuals(rp::checkpoint(product, except), RP_ARGS(x));
  names.line("any_names_but a");
  names.residuals(rp::checkpoint(product, {.policy = P::save_any_names_but_these("a")}),
                  RP_ARGS(x));
  names.end();
  auto readers = [](Array v) {
    v = rp::sin(v);
    Array y = rp::checkpoint_name(v, "y");
    return y * v;
  };
  auto only_y = rp::checkpoint(readers, {.policy = P::save_only_these_names("y")});
  Section other("g09_names_vmap_prevent_cse", "name before producer: other consumer");
  other.residuals(readers, RP_ARGS(x));
  other.line("only y");
  other.residuals(only_y, RP_ARGS(x));
  other.traced(rp::grad(only_y), x);
  other.end();
  const rp::Policy a = P::save_only_these_names("a"), b = P::save_only_these_names("b");
  Section both("g09_names_vmap_prevent_cse", "both nested");
  both.residuals(rp::checkpoint(named, {.policy = P::save_from_both_policies(a, b)}), RP_ARGS(x));
  both.line("None");
  both.end();
  Section tree("g09_names_vmap_prevent_cse", "checkpoint_name on pytree");
  tree.traced(
      [](std::pair<Array, std::tuple<Array, rp::None>> d) { return rp::checkpoint_name(d, "x"); },
      std::pair{x, std::tuple{Array(2), rp::none}});
  auto sine = [](Array v) {
    v = rp::sin(v);
    return rp::checkpoint_name(v, "a");
  };
  Section derivative("g09_names_vmap_prevent_cse", "name non str");
  derivative.traced(rp::grad(sine), x);
  derivative.traced(rp::vmap(sine), rp::ones({3}));
  derivative.end();
}

TEST_CASE("g09: one flag per array whose recomputation may be merged") {
  using Dict = std::map<std::string, Array>;
  auto run = [](Array a, Array b, Array y) {
    a = a * b;
    a = rp::sin(a);
    return a * y;
  };
  auto with = [run](rp::CheckpointOptions o) { return rp::checkpoint(run, o); };
  auto of_tree = [](Dict d, Array y) {
    Array a = d.at("a") * d.at("b");
    a = rp::sin(a);
    return a * y;
  };
  const Dict d{{"a", Array(1.0)}, {"b", Array(2.0)}};
  const Array y = 3.0;
  Section s("g09_names_vmap_prevent_cse", "prevent_cse tuple");
  const auto flags = with({.prevent_cse = std::vector{true, false, true}});
  s.traced(flags, 1.0, 2.0, 3.0);
  s.traced(rp::grad<0, 1>(flags), 1.0, 2.0, 3.0);
  s.traced(rp::grad(rp::checkpoint(of_tree, {.prevent_cse = std::vector{true, false}})), d, y);
  s.traced(rp::grad(rp::checkpoint(of_tree, {.prevent_cse = false})), d, y);
  s.end();
  auto product = [](Array x, Array v) {
    x = rp::sin(x);
    x = x * v;
    return x * 3;
  };
  Section number("g15_eager_misc", "static + prevent_cse tuple");
  number.traced(rp::checkpoint(product, {.prevent_cse = std::vector{true, false}}), 1.0, 2.0);
  number.end();
}

TEST_CASE("g13: names saved and offloaded in a loop; answers of hand-written policies") {
  auto loop = rp::checkpoint(
      [](Array x) {
        auto body = [](Array c, rp::None) {
          c = rp::sin(c);
          c = rp::checkpoint_name(c, "y");
          c = rp::sin(c);
          c = rp::checkpoint_name(c, "z");
          return std::pair{rp::sin(c), rp::none};
        };
        return rp::scan(body, x, rp::none, {.length = 3}).first;
      },
      {.policy = save_and_offload("y", "z")});
  const Array x = 1.0;
  Section s("g13_refs_offload_reduce_precision", "offload scan body names");
  s.residuals(loop, RP_ARGS(x));
  s.forward(loop, x);
  s.traced(rp::grad(loop), x);
  s.end();
  for (const std::string heading : {"cpu", "cpu jit"}) {
    Section number("g13_refs_offload_reduce_precision", heading);
    const Array g = heading == "cpu" ? rp::grad(loop)(x) : rp::jit(rp::grad(loop))(x);
    number.numbers({g.item<double>()});
    number.end();
  }
  auto sin_sin = [](Array v) {
    v = rp::sin(v);
    return rp::sin(v);
  };
  const rp::Policy saveable = [](const rp::EquationInfo&) { return rp::Saveable{}; };
  Section answers("g13_refs_offload_reduce_precision", "Saveable via enum");
  answers.residuals(rp::checkpoint(sin_sin, {.policy = saveable}), RP_ARGS(x));
  answers.end();
}

TEST_CASE("g09, g13: answers that a policy must not give") {
  auto f = [](const rp::Policy& p) {
    return rp::grad(rp::checkpoint(dots_and_names, {.policy = p}))(rp::ones({3}), rp::ones({3, 3}));
  };
  const rp::Policy both = P::save_from_both_policies(offload_dots, P::everything_saveable);
  CHECK_THROWS_WITH_AS(f(both), doctest::Contains("both policies must answer yes or no"),
                       rp::TypeError);
  CHECK_THROWS_WITH_AS(save_and_offload("a", "a"),
                       doctest::Contains("saved or offloaded, not both, got 'a'"), rp::TypeError);
  for (const rp::Offloadable& o :
       {rp::Offloadable{"pinned_host", "device"}, rp::Offloadable{"device", "foo"}}) {
    const rp::Policy policy = [o](const rp::EquationInfo&) { return o; };
    CHECK_THROWS_WITH_AS(f(policy),
                         doctest::Contains("can offload from 'device' to 'pinned_host', got"),
                         rp::TypeError);
  }
}

TEST_CASE("g13: a saved value is rounded once, where others read it, and not when it is a result") {
  auto exponential = rp::checkpoint([](Array x) { return rp::exp(x); }, everything);
  Section result("g13_refs_offload_reduce_precision",
                 "residual also primal output (everything saveable, exp)");
  result.forward(exponential, one);
  result.traced(rp::grad(exponential), one);
  result.forward(rp::checkpoint(
                     [](Array x) {
                       Array e = rp::exp(x);
                       return Pair{e, rp::sin(x)};
                     },
                     everything),
                 one);
  result.end();
  auto square = rp::checkpoint([](Array x) { return x * x; }, everything);
  Section input("g13_refs_offload_reduce_precision",
                "residual = input saved under everything: x*x");
  input.forward(square, one);
  input.traced(rp::grad(square), one);
  input.end();
  Section integer("g13_refs_offload_reduce_precision", "int residual everything");
  integer.forward(rp::checkpoint(
                      [](Array x, Array i) {
                        i = i + 1;
                        return x * i;
                      },
                      everything),
                  one, Array(2));
  integer.end();
  auto product = rp::checkpoint(
      [](Array x) {
        x = rp::dot(x, x);
        return rp::sin(x);
      },
      {.policy = P::dots_saveable});
  Section half("g13_refs_offload_reduce_precision", "bf16 reduce precision");
  half.forward(product, rp::ones({2, 2}, rp::bfloat16));
  half.forward(product, rp::ones({2, 2}, rp::float16));
  half.end();
  const rp::Policy roundings = [](const rp::EquationInfo& e) {
    return e.primitive == "reduce_precision";
  };
  auto rounded = [&](int exponent, int mantissa) {
    return rp::checkpoint(
        [=](Array x) {
          x = rp::sin(x);
          x = rp::lax::reduce_precision(x, exponent, mantissa);
          return rp::sin(x);
        },
        {.policy = roundings});
  };
  Section already("g13_refs_offload_reduce_precision", "explicit reduce_precision already");
  already.forward(rounded(8, 23), one);
  already.forward(rounded(5, 10), one);
  already.residuals(rounded(5, 10), rp::arg("x", one));
  already.end();
  Section many("g13_refs_offload_reduce_precision", "multi-output primitive saved");
  many.forward(rp::checkpoint(
                   [](Array x) {
                     x = rp::lax::top_k(x, 2).first;
                     x = rp::sin(x);
                     return rp::sum(x);
                   },
                   everything),
               rp::ones({3}));
  many.end();
}
