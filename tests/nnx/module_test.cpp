// Modules, variables, random streams; taking models apart and putting them together.
#include "nnx/checks.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <sstream>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

struct LossScale : nnx::VariableKind<LossScale> {
  using VariableKind::VariableKind;
};

struct Model : nnx::Module {
  nnx::List<nnx::Linear> layers;
  nnx::BatchNorm bn;
  nnx::Dropout dropout;
  LossScale scale{Array(2.0)};
  Array table = rp::ones({2});
  std::string name = "abc";
  int k = 3;
  explicit Model(nnx::Rngs& rngs) : bn(3, rngs), dropout(0.5, rngs) {
    for (int i = 0; i < 2; ++i) layers.append(nnx::Linear(3, 3, rngs));
  }
  REPRISE_FIELDS(layers, bn, dropout, scale, table, name, k)
};

// Two members that are one module.
struct Tied : nnx::Module {
  std::shared_ptr<nnx::Linear> a, b;
  explicit Tied(nnx::Rngs& rngs) : a(std::make_shared<nnx::Linear>(2, 2, rngs)), b(a) {}
  REPRISE_FIELDS(a, b)
};

std::vector<std::string> paths(const nnx::State& state) {
  std::vector<std::string> all;
  for (const nnx::Leaf& leaf : state.leaves()) all.push_back(nnx::joined(leaf.path, "/"));
  return all;
}

}  // namespace

TEST_CASE("a state has the paths of all variables, members in the order of their names") {
  nnx::Rngs rngs(0);
  const Model model(rngs);
  CHECK(paths(nnx::state(model)) ==
        std::vector<std::string>{"bn/bias", "bn/mean", "bn/scale", "bn/var", "dropout/rngs/count",
                                 "dropout/rngs/key", "layers/0/bias", "layers/0/kernel",
                                 "layers/1/bias", "layers/1/kernel", "scale", "table"});
  CHECK(paths(nnx::state(model, nnx::OfType<nnx::BatchStat>)) ==
        std::vector<std::string>{"bn/mean", "bn/var"});
  CHECK(paths(nnx::state(model, nnx::OfType<nnx::RngState>)).size() == 2);
  CHECK(paths(nnx::state(model, nnx::OfType<LossScale>)) == std::vector<std::string>{"scale"});
  CHECK(paths(nnx::state(model, "default")).size() == 2);  // by tag
  CHECK(paths(nnx::state(model, nnx::All({nnx::OfType<nnx::Param>, nnx::PathContains("layers")})))
            .size() == 4);
  CHECK(paths(nnx::state(model, nnx::Not({nnx::OfType<nnx::Param>, nnx::OfType<nnx::RngState>}))) ==
        std::vector<std::string>{"bn/mean", "bn/var", "scale", "table"});
  CHECK(paths(nnx::state(model, nnx::PathIn({{"layers", 1, "bias"}}))).size() == 1);
  CHECK(paths(nnx::state(model, [](const nnx::Leaf& leaf) {
          return leaf.kind == nullptr;
        })).size() == 1);
  CHECK(nnx::state(model, false).empty());
  CHECK(nnx::state(model, nnx::Everything()).size() == 12);
  CHECK(nnx::state(model, nnx::Nothing()).empty());
  const auto [params, stats] =
      nnx::state(model, nnx::OfType<nnx::Param>, nnx::OfType<nnx::BatchStat>);
  CHECK(params.size() == 6);
  CHECK(stats.size() == 2);
  const Array kernel = params["layers"][0]["kernel"];
  CHECK(kernel.shape() == rp::Shape{3, 3});
  const nnx::State layers = params["layers"];
  CHECK(paths(layers) == std::vector<std::string>{"0/bias", "0/kernel", "1/bias", "1/kernel"});
}

TEST_CASE("split takes a model apart, merge puts it together with new variables") {
  nnx::Rngs rngs(0);
  Model model(rngs);
  const auto [graphdef, params, rest] = nnx::split(model, nnx::OfType<nnx::Param>, rp::ellipsis);
  CHECK(params.size() == 6);
  CHECK(rest.size() == 6);
  Model again = nnx::merge(graphdef, params, rest);
  CHECK(again.name == "abc");
  CHECK_FALSE(again.layers[0].kernel.same_as(model.layers[0].kernel));
  CHECK(floats(again.layers[0].kernel) == floats(model.layers[0].kernel));
  again.layers[0].kernel.set_value(rp::zeros({3, 3}));
  CHECK(floats(model.layers[0].kernel) != floats(again.layers[0].kernel));
  CHECK(graphdef == nnx::graphdef(again));
  again.k = 4;
  CHECK_FALSE(graphdef == nnx::graphdef(again));
  const auto [whole_def, whole] = nnx::split(model);
  CHECK(whole.size() == 12);
  CHECK(nnx::merge(whole_def, whole).layers.size() == 2);

  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::split(model, nnx::OfType<nnx::Param>); }),
                 "every leaf must match a filter, got ('bn', 'mean') of kind BatchStat");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::split(model, nnx::OfType<nnx::Param>); }),
                 "rp::ellipsis");
  CHECK_MENTIONS(message<rp::TypeError>([&, &def = graphdef, &p = params] { nnx::merge(def, p); }),
                 "a value is missing, got none for ('bn', 'mean')");
}

TEST_CASE("update changes variables in place, clone makes new ones") {
  nnx::Rngs rngs(0), other_rngs(1);
  Model model(rngs), other(other_rngs);
  nnx::update(model, nnx::state(other, nnx::OfType<nnx::Param>));
  CHECK(floats(model.layers[1].kernel) == floats(other.layers[1].kernel));
  const Model copy = nnx::clone(model);
  CHECK_FALSE(copy.layers[0].kernel.same_as(model.layers[0].kernel));
  const Model view = model;  // a copy shares the variables
  CHECK(view.layers[0].kernel.same_as(model.layers[0].kernel));
  const nnx::State strange({{{"nowhere"}, nullptr, "", Array(1.0)}});
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::update(model, strange); }),
                 "update: the module has no such path, got ('nowhere',)");
}

TEST_CASE("a module reached twice is one") {
  nnx::Rngs rngs(0);
  Tied tied(rngs);
  CHECK(paths(nnx::state(tied)) == std::vector<std::string>{"a/bias", "a/kernel"});
  const Tied copy = nnx::clone(tied);
  CHECK(copy.a == copy.b);
  CHECK(copy.a != tied.a);
  CHECK_FALSE(copy.a->kernel.same_as(tied.a->kernel));
  const auto loss = [](Tied& t, Array x) { return rp::sum((*t.a)(x)) + rp::sum((*t.b)(x)); };
  const nnx::State grads = nnx::grad(nnx::remat(loss))(tied, rp::ones({2}));
  CHECK(floats(grads["a"]["bias"]) == std::vector<float>{2, 2});
  CHECK(grads.size() == 2);
}

TEST_CASE("a derived class in a shared pointer needs fields of its own to be copied") {
  struct Base : nnx::Module {
    nnx::Param w{Array(1.0)};
    REPRISE_FIELDS(w)
  };
  struct Derived : Base {
    nnx::Param b{Array(2.0)};
    REPRISE_FIELDS(w, b)
  };
  struct Forgetful : Base {};
  struct Holder : nnx::Module {
    std::shared_ptr<Base> inner;
    REPRISE_FIELDS(inner)
  };
  Holder holder;
  holder.inner = std::make_shared<Derived>();
  CHECK(paths(nnx::state(nnx::clone(holder))) == std::vector<std::string>{"inner/b", "inner/w"});
  holder.inner = std::make_shared<Forgetful>();
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::clone(holder); }),
                 "a class derived from a module needs REPRISE_FIELDS of its own, got a Forgetful");
}

TEST_CASE("states convert to dictionaries of arrays and back") {
  nnx::Rngs rngs(0);
  const Model model(rngs);
  const nnx::State params = nnx::state(model, nnx::OfType<nnx::Param>);
  rp::Dict dict = nnx::to_pure_dict(params);
  CHECK(dict.dict("layers").dict("1").array("kernel").shape() == rp::Shape{3, 3});
  dict["bn"]["bias"] = rp::ones({3});
  const nnx::State changed = nnx::replace_by_pure_dict(params, dict);
  CHECK(floats(changed["bn"]["bias"]) == std::vector<float>{1, 1, 1});
  const nnx::State doubled = rp::tree_map([](const Array& a) { return a * 2; }, params);
  CHECK(floats(doubled["bn"]["scale"]) == std::vector<float>{2, 2, 2});
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::replace_by_pure_dict(params, rp::Dict()); }),
                 "got 0 for 6");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   params.at({"bn", "nothing"});
                 }),
                 "no such path, got ('bn', 'nothing') where the paths are ('bn', 'bias')");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::merge_state(params, params); }), "twice");
}

TEST_CASE("train and eval set deterministic and use_running_average everywhere") {
  nnx::Rngs rngs(0);
  Model model(rngs);
  model.eval();
  CHECK(model.dropout.deterministic == true);
  CHECK(model.bn.use_running_average == true);
  const Array x = rp::ones({2, 3});
  CHECK(floats(model.dropout(x)) == floats(x));
  model.train();
  CHECK(model.dropout.deterministic == false);
  CHECK(model.bn.use_running_average == false);
  model.set_attributes({{"deterministic", true}});
  CHECK(model.dropout.deterministic == true);
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   model.set_attributes({{"nothing", true}});
                 }),
                 "no module has a bool member of this name, got 'nothing' for a Model");
}

TEST_CASE("lists behave like lists") {
  nnx::List<nnx::Variable> list{nnx::Variable(Array(0.0)), nnx::Variable(Array(1.0))};
  list.append(nnx::Variable(Array(2.0)));
  list.insert(0, nnx::Variable(Array(-1.0)));
  CHECK(list.size() == 4);
  CHECK(list[-1].get_value().item<float>() == 2);
  CHECK(list.pop().get_value().item<float>() == 2);
  CHECK(list.pop(0).get_value().item<float>() == -1);
  CHECK(list.slice(0, -1).size() == 1);
  CHECK_MENTIONS(message<rp::TypeError>([&] { list[2]; }),
                 "index out of bounds, got 2 for a list of 2");
  nnx::Dict<nnx::Param> dict{{"a", nnx::Param(Array(1.0))}};
  dict.set("b", nnx::Param(Array(2.0)));
  CHECK(dict["b"].get_value().item<float>() == 2);
  CHECK(paths(nnx::state(dict)) == std::vector<std::string>{"a", "b"});
  CHECK_MENTIONS(message<rp::TypeError>([&] { dict["c"]; }),
                 "no such key, got 'c' where the keys are a, b");
}

TEST_CASE("sow keeps values until pop takes them") {
  struct Sower : nnx::Module {
    nnx::Param w{Array(2.0)};
    Array operator()(Array x) {
      x = x * w;
      sow("hidden", x);
      return x + 1;
    }
    REPRISE_FIELDS(w)
  };
  Sower module;
  module(Array(1.0));
  const auto twice = nnx::jit([](Sower& m, Array x) { return m(m(x)); });
  twice(module, Array(1.0));
  const nnx::State sown = nnx::pop(module, nnx::OfType<nnx::Intermediate>);
  CHECK(paths(sown) == std::vector<std::string>{"hidden/0", "hidden/1", "hidden/2"});
  CHECK(sown["hidden"][2].get_value().item<float>() == 6);
  CHECK(nnx::pop(module, true).empty());
  CHECK_MENTIONS(message<rp::TypeError>([&] { module.sow("w", Array(1.0)); }),
                 "has a member of this name, got 'w'");
}

TEST_CASE("streams count, fall back to the default, fork and split") {
  auto words = [](const Array& key) {
    return rp::random::key_data(key).to_vector<std::uint32_t>();
  };
  const Array root = rp::random::key(0);
  nnx::Rngs rngs(0);
  CHECK(words(rngs.params()) == words(rp::random::fold_in(root, 0)));
  CHECK(words(rngs.dropout()) == words(rp::random::fold_in(root, 1)));
  CHECK(words(rngs()) == words(rp::random::fold_in(root, 2)));
  nnx::Rngs two({{"params", 5}, {"dropout", rp::random::PRNGKey(6)}});
  CHECK(words(two.params()) == words(rp::random::fold_in(rp::random::key(5), 0)));
  CHECK(words(two["dropout"]()) == words(rp::random::fold_in(rp::random::key(6), 0)));
  CHECK_MENTIONS(message<rp::TypeError>([&] { two(); }),
                 "no default one, got 'default' where the streams are 'params', 'dropout'");
  CHECK_MENTIONS(message<rp::TypeError>([&] { two["other"]; }), "got 'other'");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Rngs(Array(1.5)); }),
                 "a key must be a key<fry> or its two words u32[2], got f32[]");
  CHECK(words(nnx::Rngs(-1).stream("default").key) == std::vector<std::uint32_t>{0, 0xffffffff});
  CHECK(words(nnx::Rngs((1l << 40) + 3).stream("default").key) == std::vector<std::uint32_t>{0, 3});
  const nnx::Rngs forked = rngs.fork();
  CHECK(words(forked.stream("default").key) == words(rp::random::fold_in(root, 3)));
  const nnx::Rngs split = rngs.split(2);
  CHECK(words(split.stream("default").key) ==
        words(rp::random::split(rp::random::fold_in(root, 4), 2)));
  CHECK(split.stream("default").count.shape() == rp::Shape{2});
  CHECK_MENTIONS(message<rp::TypeError>([&] { split.params(); }),
                 "a stream that was split cannot be drawn from");
}

TEST_CASE("split_rngs splits for a while, reseed starts again") {
  nnx::Rngs rngs(0);
  Model model(rngs);
  const nnx::RngStream& stream = *model.dropout.rngs;
  const auto before = rp::random::key_data(stream.key).to_vector<std::uint32_t>();
  {
    const auto scope = nnx::split_rngs(model, {.splits = 4});
    CHECK(stream.key.shape() == rp::Shape{4});
    CHECK(stream.count.shape() == rp::Shape{4});
    CHECK_MENTIONS(message<rp::TypeError>([&] {
                     nnx::reseed(model, {{"default", 1}});
                   }),
                   "the stream was split");
  }
  CHECK(rp::random::key_data(stream.key).to_vector<std::uint32_t>() == before);
  CHECK(stream.count.get_value().item<int>() == 1);
  {
    const auto scope = nnx::split_rngs(model, {.splits = 4, .only = "other"});
    CHECK(stream.key.shape().empty());
  }
  nnx::reseed(model, {{"default", 9}});
  CHECK(
      rp::random::key_data(stream.key).to_vector<std::uint32_t>() ==
      rp::random::key_data(rp::random::fold_in(rp::random::key(9), 0)).to_vector<std::uint32_t>());
  CHECK(stream.count.get_value().item<int>() == 0);
}

TEST_CASE("variables and modules print as Flax prints them") {
  nnx::Rngs rngs(0);
  const Model model(rngs);
  std::ostringstream out;
  out << model;
  const std::string text = out.str();
  CHECK(text.starts_with(
      "Model( # Param: 30 (120 B), BatchStat: 6 (24 B), RngState: 2 (12 B), LossScale: 1 (4 B), "
      "Total: 39 (160 B)\n  layers=List([\n    Linear( # Param: 12 (48 B)\n      kernel=Param( # 9 "
      "(36 B)\n"
      "        value=Array(shape=(3, 3), dtype=dtype('float32'))\n      ),"));
  CHECK_MENTIONS(text, "  name='abc',\n  k=3\n)");
  CHECK_MENTIONS(text, "deterministic=False");
  CHECK_MENTIONS(text,
                 "count=RngCount( # 1 (4 B)\n        value=Array(0, dtype=uint32),\n        "
                 "tag='default'\n      )");
  out.str("");
  out << nnx::Param(rp::ones({2}));
  CHECK_MENTIONS(out.str(), "Param( # 2 (8 B)\n  value=Array([1");
  out.str("");
  out << nnx::state(model, nnx::PathContains("bn"));
  CHECK_MENTIONS(out.str(),
                 "State({\n  'bn': {\n    'bias': Param( # 3 (12 B)\n      value=Array([0");
}

TEST_CASE("variables read like arrays and can be changed") {
  const nnx::Param w(rp::array({1.0, 2.0}));
  CHECK(floats(w + w) == std::vector<float>{2, 4});
  CHECK(floats(rp::exp(w) * 0 + w) == std::vector<float>{1, 2});
  CHECK(w[1].item<float>() == 2);
  w += 1;
  w *= 2;
  w -= 1;
  w /= 1;
  CHECK(floats(w) == std::vector<float>{3, 5});
  const nnx::Param same = w;
  same.set_value(rp::zeros({2}));
  CHECK(floats(w) == std::vector<float>{0, 0});
  CHECK_MENTIONS(message<rp::TypeError>([] { nnx::Param().get_value(); }), "never given a value");
}
