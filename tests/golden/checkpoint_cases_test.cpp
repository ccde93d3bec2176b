// The golden programs with checkpoint: texts, values, gradients and residuals.
#include "golden/models.h"

namespace {

using namespace golden;
namespace P = rp::checkpoint_policies;
using Pair = std::pair<Array, Array>;

template <class F>
void check1(const std::string& name, const F& f) {
  check_case(name, f, arg(case_named(name), 0)[0]);
}
template <class F>
void check2(const std::string& name, const F& f) {
  const Json& c = case_named(name);
  check_case(name, f, arg(c, 0)[0], arg(c, 1)[0]);
}
template <class F>
void check3(const std::string& name, const F& f) {
  const Json& c = case_named(name);
  check_case(name, f, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0]);
}
template <class F>
void check4(const std::string& name, const F& f) {
  const Json& c = case_named(name);
  check_case(name, f, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0]);
}
template <class F>
void check5(const std::string& name, const F& f) {
  const Json& c = case_named(name);
  check_case(name, f, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0], arg(c, 4)[0]);
}

using Function = std::function<Array(Array)>;
// The tutorial's recursive_checkpoint.
Function recursive(const std::vector<Function>& funs) {
  if (funs.size() == 1) return funs[0];
  if (funs.size() == 2) {
    return [f1 = funs[0], f2 = funs[1]](Array x) {
      x = f2(x);
      return f1(x);
    };
  }
  const auto middle = funs.begin() + static_cast<std::ptrdiff_t>(funs.size() / 2);
  const Function f1 = recursive({funs.begin(), middle});
  const Function f2 = recursive({middle, funs.end()});
  return [f1, c2 = rp::checkpoint(f2)](Array x) {
    x = c2(x);
    return f1(x);
  };
}
Function chain_of_sins(std::size_t n) {
  return recursive(std::vector<Function>(n, [](Array x) { return rp::sin(x); }));
}
Array sin_sin(Array x) {
  x = rp::sin(x);
  return rp::sin(x);
}
std::pair<Array, rp::None> layer(Array x, Pair Wb) {
  Array y = rp::dot(x, Wb.first);
  y = y + Wb.second;
  return {rp::maximum(y, 0.), rp::none};
}

}  // namespace

TEST_CASE("golden tutorial_f2, f3, f4: checkpoint by placing, by policy, by name") {
  check4("tutorial_f2", [](Array W1, Array W2, Array W3, Array x) {
    x = rp::checkpoint(g)(W1, x);
    x = rp::checkpoint(g)(W2, x);
    return rp::checkpoint(g)(W3, x);
  });
  check4("tutorial_f3", rp::checkpoint(f3layers, {.policy = P::dots_with_no_batch_dims_saveable}));
  check4("tutorial_f4", rp::checkpoint(named3, {.policy = P::save_only_these_names("a")}));
}

TEST_CASE("golden tutorial_loss under policies") {
  const Json& c = case_named("tutorial_loss_checkpoint");
  check_case("tutorial_loss_checkpoint",
             rp::checkpoint(loss_of<predict>, {.policy = P::dots_with_no_batch_dims_saveable}),
             arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
  check_case("tutorial_loss_checkpoint2",
             rp::checkpoint(loss_of<predict_named>,
                            {.policy = P::save_any_names_but_these("layer1_output")}),
             arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
}

TEST_CASE("golden tutorial_recursive: residuals grow as the logarithm") {
  check1("tutorial_recursive8", chain_of_sins(8));
  check1("tutorial_recursive16", chain_of_sins(16));
}

TEST_CASE("golden tutorial_scan_layers with checkpoint and policy") {
  check3("tutorial_scan_layers_checkpoint", [](Array x, Array all_W, Array all_b) {
    return rp::scan(rp::checkpoint(layer), x, Pair{all_W, all_b}).first;
  });
  check3("tutorial_scan_layers_policy", [](Array x, Array all_W, Array all_b) {
    auto body = rp::checkpoint(layer, {.policy = P::dots_with_no_batch_dims_saveable});
    return rp::scan(body, x, Pair{all_W, all_b}).first;
  });
}

TEST_CASE("golden mlp under every policy") {
  check5("mlp_everything", rp::checkpoint(mlp, {.policy = P::everything_saveable}));
  check5("mlp_nothing", rp::checkpoint(mlp, {.policy = P::nothing_saveable}));
  check5("mlp_default", rp::checkpoint(mlp));
  check5("mlp_dots", rp::checkpoint(mlp, {.policy = P::dots_saveable}));
  check5("mlp_dots_no_batch", rp::checkpoint(mlp, {.policy = P::dots_with_no_batch_dims_saveable}));
  check5("mlp_any_names_but",
         rp::checkpoint(mlp_named, {.policy = P::save_any_names_but_these("act")}));
  check5("mlp_only_names",
         rp::checkpoint(mlp_named, {.policy = P::save_only_these_names("act", "out")}));
  check5("mlp_both",
         rp::checkpoint(mlp_named, {.policy = P::save_from_both_policies(
                                        P::dots_saveable, P::save_only_these_names("act"))}));
  const rp::Policy only_max([](const rp::EquationInfo& e) { return e.primitive == "max"; },
                            "mlp_custom_max.<locals>.<lambda>");
  check5("mlp_custom_max", rp::checkpoint(mlp, {.policy = only_max}));
}

TEST_CASE("golden attention and a norm block under policies") {
  check4("attention_default", rp::checkpoint(attention));
  check4("attention_dots", rp::checkpoint(attention, {.policy = P::dots_saveable}));
  check4("attention_dots_no_batch",
         rp::checkpoint(attention, {.policy = P::dots_with_no_batch_dims_saveable}));
  auto block = [](Array x, Array gain, Array b, Array W) {
    Array n = norm(x, gain, b);
    n = rp::matmul(n, W);
    n = rp::tanh(n);
    return x + n;
  };
  check4("normblock_dots", rp::checkpoint(block, {.policy = P::dots_saveable}));
}

TEST_CASE("golden structure: nesting, outputs, arguments, closures, constants, dtypes") {
  check1("nested_default", rp::checkpoint([](Array x) {
           x = rp::checkpoint(sin_sin)(x);
           return rp::sin(x);
         }));
  auto inner = rp::checkpoint(
      [](Array y) {
        y = rp::sin(y);
        return rp::exp(y);
      },
      {.policy = P::everything_saveable});
  check1("nested_policies", rp::checkpoint(
                                [inner](Array x) {
                                  x = rp::tanh(x);
                                  x = inner(x);
                                  return rp::cos(x);
                                },
                                {.policy = P::nothing_saveable}));
  check2("several_outputs", rp::checkpoint([](Array x, Array y) {
           Array s = rp::sin(x);
           s = s * y;
           Array e = rp::exp(y);
           return std::tuple{s, e, x};
         }));
  check2("unused_argument", rp::checkpoint([](Array x, Array) { return sin_sin(x); }));
  check2("closed_over", [](Array x, Array y) {
    auto body = [y](Array v) {
      Array s = rp::sin(v);
      Array e = rp::exp(y);
      return s * e;
    };
    return rp::sum(rp::checkpoint(body)(x));
  });
  check1("constant_inside", rp::checkpoint([](Array x) {
           Array s = rp::sin(x);
           Array n = rp::arange(3, rp::float32);
           return s * n;
         }));
  check2("integer_argument", rp::checkpoint([](Array x, Array i) {
           Array s = rp::sin(x);
           return s * i;
         }));
  check1("bfloat16_chain", rp::checkpoint([](Array x) {
           x = rp::exp(x);
           return rp::sin(x);
         }));
  const Json& c = case_named("pytree_arguments");
  using Dict = std::map<std::string, Array>;
  auto f = [](Dict p, Pair xs) {
    Array a = rp::matmul(xs.first, p["w"]);
    a = a + p["b"];
    a = rp::tanh(a);
    Array b = rp::matmul(xs.second, p["w"]);
    b = rp::sin(b);
    return a + b;
  };
  check_case("pytree_arguments", rp::checkpoint(f), Dict{{"b", arg(c, 0)[0]}, {"w", arg(c, 0)[1]}},
             Pair{arg(c, 1)[0], arg(c, 1)[1]});
}

TEST_CASE("golden transforms of checkpoint") {
  check2("vmap_of_checkpoint_dots_no_batch", [](Array X, Array W) {
    auto f = [W](Array x) {
      x = rp::matmul(W, x);
      return rp::sin(x);
    };
    return rp::vmap(rp::checkpoint(f, {.policy = P::dots_with_no_batch_dims_saveable}))(X);
  });
  check2("vmap_of_checkpoint_batched_dot", [](Array X, Array W) {
    auto f = [](Array w, Array x) {
      x = rp::matmul(w, x);
      return rp::sin(x);
    };
    return rp::vmap(rp::checkpoint(f, {.policy = P::dots_with_no_batch_dims_saveable}))(W, X);
  });
  check1("grad_of_checkpoint", rp::grad([](Array x) {
           x = rp::checkpoint(sin_sin)(x);
           return rp::sum(x);
         }));
  check2("jvp_of_checkpoint", [](Array x, Array t) {
    auto f = [](Array v) {
      v = rp::exp(v);
      return rp::sin(v);
    };
    return rp::jvp(rp::checkpoint(f), std::tuple{x}, std::tuple{t});
  });
  check1("jit_inside_checkpoint", rp::checkpoint([](Array x) {
           x = rp::jit(sin_sin)(x);
           return x * 2.;
         }));
  check1("checkpoint_inside_jit", rp::jit([](Array x) {
           x = rp::checkpoint(sin_sin)(x);
           return x * 2.;
         }));
}

TEST_CASE("golden library functions and custom rules inside checkpoint") {
  check1("relu_inside_checkpoint", rp::checkpoint([](Array x) {
           x = rp::sin(x);
           return rp::nn::relu(x);
         }));
  check1("logsumexp_inside_checkpoint", rp::checkpoint([](Array x) {
           x = rp::sin(x);
           return rp::logsumexp(x);
         }));
  auto clipped = rp::custom_vjp([](Array x) { return rp::sin(x); },
                                [](Array x) {
                                  Array y = rp::sin(x);
                                  Array c = rp::cos(x);
                                  return std::pair{y, c};
                                },
                                [](Array c, Array t) {
                                  c = rp::maximum(c, 0.5);
                                  return c * t;
                                });
  check1("custom_vjp_inside_checkpoint", rp::checkpoint([clipped](Array x) {
           x = rp::exp(x);
           return clipped(x);
         }));
  auto log1pexp = [](Array x) {
    x = rp::exp(x);
    x = 1. + x;
    return rp::log(x);
  };
  auto soft = rp::custom_jvp(log1pexp, [log1pexp](std::tuple<Array> p, std::tuple<Array> t) {
    Array y = log1pexp(std::get<0>(p));
    Array e = rp::exp(-std::get<0>(p));
    e = 1. + e;
    return std::pair{y, std::get<0>(t) / e};
  });
  check1("custom_jvp_inside_checkpoint", rp::checkpoint(
                                             [soft](Array x) {
                                               x = rp::exp(x);
                                               return soft(x);
                                             },
                                             {.policy = P::nothing_saveable}));
}

TEST_CASE("golden control flow with checkpoint") {
  auto step = [](Array c, Array x) {
    Array s = rp::sin(c);
    return Pair{s * x, c};
  };
  check2("scan_checkpoint_body",
         [step](Array c, Array xs) { return rp::scan(rp::checkpoint(step), c, xs); });
  check2("checkpoint_of_scan",
         rp::checkpoint([step](Array c, Array xs) { return rp::scan(step, c, xs); }));
  check2("scan_policy_dots", [](Array c, Array Ws) {
    auto body = [](Array h, Array W) {
      h = rp::matmul(h, W);
      return std::pair{rp::tanh(h), rp::none};
    };
    return rp::scan(rp::checkpoint(body, {.policy = P::dots_saveable}), c, Ws).first;
  });
  check2("scan_policy_names", [](Array c, Array Ws) {
    auto body = [](Array h, Array W) {
      h = rp::matmul(h, W);
      h = rp::checkpoint_name(h, "pre");
      return std::pair{rp::tanh(h), rp::none};
    };
    return rp::scan(rp::checkpoint(body, {.policy = P::save_only_these_names("pre")}), c, Ws).first;
  });
  check2("cond_inside_checkpoint", rp::checkpoint([](Array x, Array p) {
           return rp::cond(
               p, sin_sin, [](Array v) { return rp::cos(v); }, x);
         }));
  check2("cond_of_checkpoint", [](Array x, Array p) {
    return rp::cond(
        p, rp::checkpoint(sin_sin), [](Array v) { return rp::cos(v); }, x);
  });
}

TEST_CASE("golden indexing, shaping and convolution inside checkpoint") {
  const Json& e = case_named("embedding_lookup");
  const Array i = arg(e, 1)[0];
  check_case(
      "embedding_lookup",
      [](Array E, Array index) {
        return rp::checkpoint([index](Array table) { return rp::sin(table[index]); })(E);
      },
      arg(e, 0)[0], i);
  check1("shaping", rp::checkpoint([](Array x) {
           Array a = rp::transpose(x, {0, 2, 1});
           a = a.reshape({2, 12});
           a = a(rp::all, rp::slice(2, 8));
           Array b = x(rp::all, rp::slice(std::nullopt, 2), rp::slice(std::nullopt, 3));
           b = b.reshape({2, 6});
           return rp::sin(rp::concatenate({a, b}, 1));
         }));
  check2("convolution", rp::checkpoint([](Array x, Array k) {
           const auto pads = rp::lax::padtype_to_pads({6, 6}, {3, 3}, {1, 1}, "SAME");
           const Array y = rp::lax::conv_general_dilated(
               x, k,
               {.padding = pads,
                .dimension_numbers = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC")});
           return rp::tanh(y);
         }));
}

TEST_CASE("golden dropout_inside_checkpoint: the mask is drawn again, the same") {
  auto dropout = [](Array x) {
    Array key = rp::random::key(7);
    Array kept = rp::random::bernoulli(key, 0.5, x.shape());
    Array y = rp::sin(x);
    y = y / 0.5;
    return rp::where(kept, y, 0.);
  };
  auto f = rp::checkpoint(dropout);
  check1("dropout_inside_checkpoint", f);
  // The case is not marked as exact, but its texts are.
  const Json& c = case_named("dropout_inside_checkpoint");
  const Array x = arg(c, 0)[0];
  const rp::Jaxpr program = rp::make_jaxpr(f)(x);
  CHECK(program.str() == c["jaxpr"].get<std::string>());
  CHECK(rp::fwd_bwd(f, x).forward.str() == c["fwd"].get<std::string>());
  CHECK(rp::fwd_bwd(f, x).backward.str() == c["bwd"].get<std::string>());
  CHECK(rp::parse_jaxpr(program.str()).str() == program.str());
  check_values("parsed", rp::parse_jaxpr(program.str()).eval({x}), c["out"]);
}

TEST_CASE("save_anything_except_these_names leaves out the named value and the value it names") {
  const Json& c = case_named("mlp_anything_but");
  const Arrays a{arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0], arg(c, 4)[0]};
  // Bytes of intermediate values; arguments are there anyway.
  auto saved = [&](const rp::Policy& policy) {
    std::size_t bytes = 0;
    for (const rp::SavedResidual& r : rp::saved_residuals(
             rp::checkpoint(mlp_named, {.policy = policy}), a[0], a[1], a[2], a[3], a[4])) {
      if (r.origin.find("argument") == std::string::npos) bytes += r.bytes;
    }
    return bytes;
  };
  const std::size_t activation = 3 * 5 * sizeof(float);
  const std::size_t everything = saved(P::everything_saveable);
  CHECK(everything == 2 * activation);  // the quotient of the derivative of max, and `act`
  // `act` is computed again from the saved pre-activation.
  CHECK(saved(P::save_anything_except_these_names("act")) == 2 * activation);
  // Without the pre-activation too it is computed from the product and the bias row: neither named
  // value is kept under another label.
  CHECK(saved(P::save_anything_but_these_names("act", "pre")) ==
        2 * activation + 5 * sizeof(float));
}
