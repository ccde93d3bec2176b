// Names, scopes, keys and collections of modules against the real Flax.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
namespace init = reprise::nn::initializers;
using flax::check_gradients;
using flax::check_model;
using flax::wave;
using rp::Array;
using rp::Dict;

namespace {

struct SequentialInside : nn::Module<SequentialInside> {
  Array call(Array x) { return nn::Sequential({nn::Dense(3), nn::relu, nn::Dense(2)})(x); }
};

struct Setup : nn::Module<Setup> {
  std::optional<nn::Dense> d, named;
  std::vector<nn::Dense> ds;
  std::map<std::string, nn::Dense> dd;
  Array w, u;
  REPRISE_SUBMODULES(d, ds, dd, named)
  void setup() {
    w = param("w", init::normal(1.0), {4});
    d = nn::Dense(3);
    ds.clear();
    for (int i = 0; i < 2; ++i) ds.emplace_back(3);
    dd = {{"a", nn::Dense(2)}, {"b", nn::Dense(2)}};
    u = param("u", init::normal(1.0), {2});
    named = nn::Dense(2, {.name = "other"});
  }
  Array call(Array x) {
    x = (*d)(x * w);
    for (nn::Dense& layer : ds) x = layer(x);
    const Array a = dd.at("a")(x);
    const Array b = dd.at("b")(x);
    const Array c = (*named)(x);
    return a + b * u + c;
  }
};

// The same with members made by the constructor.
struct Members : nn::Module<Members> {
  nn::Dense d, named;
  std::vector<nn::Dense> ds;
  std::map<std::string, nn::Dense> dd;
  REPRISE_SUBMODULES(d, ds, dd, named)
  Members() : d(3), named(2, {.name = "other"}) {
    for (int i = 0; i < 2; ++i) ds.emplace_back(3);
    dd.emplace("a", nn::Dense(2));
    dd.emplace("b", nn::Dense(2));
  }
  Array call(Array x) {
    const Array w = param("w", init::normal(1.0), {4});
    const Array u = param("u", init::normal(1.0), {2});
    x = d(x * w);
    for (nn::Dense& layer : ds) x = layer(x);
    const Array a = dd.at("a")(x);
    const Array b = dd.at("b")(x);
    const Array c = named(x);
    return a + b * u + c;
  }
};

struct Shared : nn::Module<Shared> {
  Array call(Array x) {
    nn::Dense d(4);
    nn::Dense a(4, {.name = "a"});
    x = d(x);
    nn::Dense same = d;
    x = same(x);
    x = a(x);
    return nn::Dense(2)(x);
  }
};

struct Wrap : nn::Module<Wrap> {
  nn::Dense inner;
  explicit Wrap(nn::Dense inner) : inner(std::move(inner)) {}
  REPRISE_SUBMODULES(inner)
  Array call(Array x) {
    x = inner(x);
    return nn::Dense(2)(x);
  }
};

struct WrapInside : nn::Module<WrapInside> {
  Array call(Array x) {
    nn::Dense i(3);
    const Array y = nn::remat<Wrap>()(i)(x);
    const Array z = rp::sum(i(x));
    return y + z;
  }
};

struct Twin : nn::Module<Twin> {
  Wrap a, b;
  Twin(Wrap a, Wrap b) : a(std::move(a)), b(std::move(b)) {}
  REPRISE_SUBMODULES(a, b)
  Array call(Array x) {
    const Array second = b(x);
    const Array first = a(x);
    return second + first;
  }
};

struct Ordinals : nn::Module<Ordinals> {
  Array call(Array) {
    const Array a = param("a", init::normal(1.0), {2});
    const Array b = param("b", init::normal(1.0), {2});
    const Array c = param("c", init::normal(1.0), {2});
    make_rng("params");
    const Array d = param("d", init::normal(1.0), {2});
    const Array e = param("e", [](const Array& key) { return rp::random::uniform(key, {2}); });
    return a + b + c + d + e;
  }
};

struct TwoDrop : nn::Module<TwoDrop> {
  std::pair<Array, Array> call(Array x) {
    nn::Dropout d(0.5, {.deterministic = false});
    const Array a = d(x);
    const Array b = d(x);
    return {a, b};
  }
};

struct AutoEncoder : nn::Module<AutoEncoder> {
  nn::Dense e, d;
  AutoEncoder() : e(2), d(4) {}
  REPRISE_SUBMODULES(e, d)
  Array call(Array x) { return decode(encode(x)); }
  Array encode(Array x) { return e(x); }
  Array decode(Array z) { return d(z); }
};

struct TwoCompact : nn::Module<TwoCompact> {
  Array f(Array x) { return nn::Dense(4)(x); }
  Array g(Array x) { return nn::Dense(4)(x); }
  Array call(Array x) { return run<&TwoCompact::g>(run<&TwoCompact::f>(x)); }
};

struct Sow : nn::Module<Sow> {
  Array call(Array x) {
    sow("intermediates", "h", x);
    sow("intermediates", "h", x * 2);
    const auto add = [](Array a, Array b) { return a + b; };
    const auto zero = [] { return Array(0.0); };
    sow("sums", "s", x, add, zero);
    sow("sums", "s", x, add, zero);
    return nn::Dense(2)(x);
  }
};

struct Perturbed : nn::Module<Perturbed> {
  Array call(Array x) {
    x = nn::Dense(3)(x);
    x = perturb("d", x);
    return nn::Dense(2)(x);
  }
};

// Blocks with members, made inside a call.
struct Outer : nn::Module<Outer> {
  Array call(Array x) {
    Members first;
    nn::Dense last(4);
    Members second;
    const Array early = last(x);
    const Array a = first(x);
    const Array b = second(x);
    return a + b + rp::sum(early);
  }
};

}  // namespace

TEST_CASE("Sequential: children by place, or of the module whose call made them") {
  check_model("sequential_top", nn::Sequential({nn::Dense(3), nn::relu, nn::Dense(2)}), {},
              wave({4}));
  check_model("sequential_inside", SequentialInside(), {}, wave({4}));
}

TEST_CASE("setup names children after members: single, in a vector, in a map, explicit") {
  check_model("setup_style", Setup(), {.seed = 42}, wave({4}));
  check_model("setup_style", Members(), {.seed = 42}, wave({4}));
  check_model("setup_style_remat", nn::remat<Setup>()(), {.seed = 42}, wave({4}));
  check_model("setup_style_remat", nn::remat<Members>()(), {.seed = 42}, wave({4}));
}

TEST_CASE("a module called twice, or copied, shares its parameters") {
  check_model("shared_and_named", Shared(), {}, wave({4}));
}

TEST_CASE("a module given as a member is named after it, also when it was named outside") {
  check_model("attribute_top", Wrap(nn::Dense(3)), {}, wave({4}));
  check_model("attribute_named_outside", Wrap(nn::Dense(3, {.name = "foo"})), {}, wave({4}));
}

TEST_CASE(
    "a module made by the caller keeps its place, also inside remat and when two modules hold it") {
  check_model("attribute_inside_remat", WrapInside(), {}, wave({4}));
  const nn::Dense shared(3);
  check_model("attribute_shared", Twin(Wrap(shared), Wrap(shared)), {}, wave({4}));
}

TEST_CASE(
    "members made by constructors inside a call do not count among the children of the call") {
  const Dict params = Outer().init(rp::random::PRNGKey(0), wave({4})).dict("params");
  std::vector<std::string> names;
  for (const auto& [name, node] : params.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"Dense_0", "Members_0", "Members_1"});
  CHECK(params.dict("Members_1").contains("ds_1"));
}

TEST_CASE("each request for a key counts, parameter or not") {
  check_model("param_ordinals", Ordinals(), {.rngs = rp::random::PRNGKey(0)}, wave({2}));
}

TEST_CASE("the second call of a dropout draws another mask, with and without remat") {
  const flax::CaseOptions options = {.rngs = {{"dropout", rp::random::PRNGKey(9)}}};
  check_model("dropout_twice", TwoDrop(), options, wave({16}));
  check_model("dropout_twice_remat", nn::remat<TwoDrop>()(), options, wave({16}));
}

TEST_CASE("init and apply run another method than call, and methods share children by name") {
  check_model<&AutoEncoder::encode>("method_encode", AutoEncoder(), {}, wave({4}));
  check_model("two_compact_methods", TwoCompact(), {}, wave({4}));
}

TEST_CASE("sow appends values or reduces them, also inside remat") {
  const flax::CaseOptions options = {.changes = {"intermediates", "sums"}};
  check_model("sow", Sow(), options, wave({3}));
  check_model("sow_remat", nn::remat<Sow>()(), options, wave({3}));
  const Dict variables = Sow().init(rp::random::PRNGKey(0), wave({3}));
  CHECK_FALSE(variables.contains("intermediates"));
}

TEST_CASE("capture_intermediates stores the result of each call") {
  const flax::Json& c = flax::more("capture");
  const Array x = wave({4});
  const auto check = [&](const auto& model) {
    const Dict variables = model.init(rp::random::PRNGKey(0), x);
    const auto [out, changed] =
        model.apply(variables, nn::mutable_("intermediates", {.capture_intermediates = true}), x);
    flax::check_close(changed, flax::dict_of(c.at("changed")));
  };
  check(Shared());
  check(nn::remat<Shared>()());
}

TEST_CASE("the gradient of a perturbation is that of the value it is added to") {
  const flax::Json& c = flax::more("perturb");
  const Array x = wave({4});
  const Dict variables = Perturbed().init(rp::random::PRNGKey(0), x);
  flax::check_bits(variables, flax::dict_of(c.at("variables")));
  Dict only_params;
  only_params["params"] = variables.dict("params");
  flax::check_result(Perturbed().apply(only_params, x), c.at("out"));
  const Dict grads =
      rp::grad([&](Dict v) { return rp::sum(rp::square(Perturbed().apply(v, x))); })(variables);
  flax::check_close(grads.dict("perturbations"), flax::dict_of(c.at("grad")));
}
