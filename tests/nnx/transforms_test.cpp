// jit, grad, vmap, scan of functions that take modules.
#include "nnx/checks.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

struct Counter : nnx::Module {
  nnx::Variable count{rp::array(0, rp::int32)};
  int calls = 0;
  REPRISE_FIELDS(count, calls)
};
struct Block : nnx::Module {
  nnx::Linear linear;
  nnx::Dropout dropout;
  explicit Block(const nnx::Rngs& rngs) : linear(3, 3, rngs), dropout(0.5, rngs) {}
  Array operator()(Array x) { return dropout(linear(x)); }
  Array forward(Array x, bool twice) { return twice ? linear(linear(x)) : linear(x); }
  REPRISE_FIELDS(linear, dropout)
};
struct WithArray : nnx::Module {
  nnx::Data<std::vector<Array>> history{std::vector<Array>{rp::zeros({2})}};
  Array last = rp::zeros({2});
  nnx::Static<std::function<Array(Array)>> f{[](Array x) { return x * 2; }};
  REPRISE_FIELDS(history, last, f)
};

}  // namespace

TEST_CASE("jit traces once per structure, types and static values, and writes state back") {
  int traces = 0;
  const auto step = nnx::jit([&traces](Counter& c, Array x) {
    ++traces;
    c.count += 1;
    return x * c.count;
  });
  Counter a, b;
  CHECK(step(a, rp::ones({2})).to_vector<float>() == std::vector<float>{1, 1});
  CHECK(step(a, rp::ones({2})).to_vector<float>() == std::vector<float>{2, 2});
  CHECK(step(b, rp::ones({2})).to_vector<float>() ==
        std::vector<float>{1, 1});  // another module, same program
  CHECK(a.count.get_value().item<int>() == 2);
  CHECK(traces == 1);
  b.calls = 5;
  step(b, rp::ones({2}));
  CHECK(traces == 2);
  step(b, rp::ones({3}));
  CHECK(traces == 3);
}

TEST_CASE("static members that a function changes are changed after remat and jit") {
  const auto f = [](Counter& c, Array x) {
    ++c.calls;
    c.count += 1;
    return x + 1;
  };
  Counter c;
  nnx::remat(f)(c, Array(1.0));
  CHECK(c.calls == 1);
  const auto jitted = nnx::jit(f);
  for (int i = 0; i < 3; ++i) jitted(c, Array(1.0));
  CHECK(c.calls == 4);
  CHECK(c.count.get_value().item<int>() == 4);
}

TEST_CASE("modules made inside jit have the numbers of those made outside") {
  const auto create = nnx::jit([](nnx::Rngs& rngs) { return nnx::Linear(3, 4, rngs); });
  nnx::Rngs inside(5), outside(5);
  const nnx::Linear a = create(inside), b(3, 4, outside), c = create(inside), d(3, 4, outside);
  CHECK(floats(a.kernel) == floats(b.kernel));
  CHECK(floats(c.kernel) == floats(d.kernel));
  CHECK_FALSE(a.kernel.same_as(c.kernel));
  CHECK(inside.stream("default").count.get_value().item<int>() == 4);
}

TEST_CASE("jit returns trees, nothing, and the modules it was given") {
  Counter c;
  nnx::jit([](Counter& counter) { counter.count += 1; })(c);
  CHECK(c.count.get_value().item<int>() == 1);
  const auto both = nnx::jit([](Counter& counter, Array x) {
    counter.count += 1;
    return std::pair{counter, std::vector<Array>{x, x + 1}};
  });
  for (int i = 0; i < 2; ++i) {
    const auto [same, list] = both(c, Array(1.0));
    CHECK(same.count.same_as(c.count));
    CHECK(list[1].item<float>() == 2);
  }
  CHECK(c.count.get_value().item<int>() == 3);
}

TEST_CASE("arrays in members are data, values in nnx::Static are not") {
  const auto push = nnx::jit([](WithArray& m, Array x) {
    m.last = m.f.get()(x);
    m.history->push_back(m.last);
    return m.last + m.history.get()[0];
  });
  WithArray m;
  CHECK(floats(push(m, rp::ones({2}))) == std::vector<float>{2, 2});
  CHECK(floats(push(m, rp::ones({2}) * 3)) == std::vector<float>{6, 6});
  CHECK(m.history->size() == 3);
  CHECK(floats(m.history.get()[1]) == std::vector<float>{2, 2});
  CHECK(floats(m.last) == std::vector<float>{6, 6});
  m.f = [](Array x) { return x * 10; };
  CHECK(floats(push(m, rp::ones({2}))) == std::vector<float>{10, 10});
}

TEST_CASE("values come back after an exception") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const std::vector<float> before = floats(block.linear.kernel);
  const auto fails = [](Block& b, Array x) -> Array {
    b.linear.kernel.set_value(b.linear.kernel * 2);
    b.dropout(x);
    throw std::runtime_error("stop");
  };
  CHECK_THROWS_AS(nnx::remat(fails)(block, rp::ones({3})), std::runtime_error);
  CHECK_THROWS_AS(nnx::jit(fails)(block, rp::ones({3})), std::runtime_error);
  CHECK(floats(block.linear.kernel) == before);
  CHECK(block.dropout.rngs->count.get_value().item<int>() == 0);
  block.linear.kernel.set_value(block.linear.kernel * 2);  // may be changed again
}

TEST_CASE("a variable that was not passed cannot be changed inside") {
  Counter c;
  const auto captures = [&c](Array x) {
    c.count += 1;
    return x;
  };
  for (const std::string& text :
       {message<rp::TraceError>([&] { nnx::remat(captures)(Array(1.0)); }),
        message<rp::TraceError>([&] { nnx::jit(captures)(Array(1.0)); }),
        message<rp::TraceError>([&] { rp::jit(captures)(Array(1.0)); })}) {
    CHECK_MENTIONS(
        text, "a Variable cannot be changed from another trace level than its own, got a i32[]");
    CHECK_MENTIONS(text, "pass the variable, or the module that holds it");
    CHECK_MENTIONS(text, "transforms_test.cpp:");
  }
  CHECK(c.count.get_value().item<int>() == 0);
  nnx::Rngs rngs(0);
  Block block(rngs);  // a module that changes nothing may be the function itself, or be captured
  block.eval();
  const Array x = rp::ones({3});
  CHECK(floats(nnx::remat(block)(x)) == floats(block(x)));
  CHECK(floats(nnx::jit([&block](Array in) { return block(in); })(x)).size() == 3);
}

TEST_CASE("methods are functions of their module") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const Array x = rp::ones({3});
  CHECK(floats(nnx::remat(&Block::forward)(block, x, true)) ==
        floats(block.linear(block.linear(x))));
  CHECK(floats(nnx::jit(&Block::forward)(block, x, false)).size() == 3);
}

TEST_CASE("static arguments are seen as they are") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const Array x = rp::ones({3});
  const auto f = nnx::remat(nnx::static_argnums<2>(
      [](auto& b, Array in, auto train) { return train ? b.linear(in) : in; }));
  CHECK(floats(f(block, x, true)) == floats(block.linear(x)));
  CHECK(floats(f(block, x, false)) == floats(x));
  const auto jitted = nnx::jit(nnx::static_argnums<2>(
      [](auto& b, Array in, auto train) { return train ? b.linear(in) : in; }));
  CHECK(floats(jitted(block, x, false)) == floats(x));
  CHECK(floats(jitted(block, x, true)) != floats(x));
}

TEST_CASE("grad chooses by filter and by argument, and hands on the rest") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  block.eval();
  const auto loss = [](Block& b, Array x) { return rp::sum(rp::square(b(x))); };
  const Array x = rp::ones({3});
  const nnx::State all = nnx::grad(loss)(block, x);
  CHECK(all.size() == 2);
  const nnx::State kernels = nnx::grad(loss, {.wrt = nnx::PathContains("kernel")})(block, x);
  CHECK(kernels.size() == 1);
  CHECK(floats(kernels["linear"]["kernel"]) == floats(all["linear"]["kernel"]));
  const nnx::State biases =
      nnx::grad(loss, {.diff_states = {{0, nnx::PathContains("bias")}}})(block, x);
  CHECK(biases.size() == 1);
  const Array dx = nnx::grad<1>(loss)(block, x);
  CHECK(dx.shape() == rp::Shape{3});
  const auto with_aux = [](Block& b, Array in) {
    const Array y = b(in);
    return std::pair{rp::sum(y), y};
  };
  const auto [value, grads] = nnx::value_and_grad(with_aux, nnx::has_aux)(block, x);
  CHECK(value.second.shape() == rp::Shape{3});
  const auto [state, aux] = nnx::grad(with_aux, nnx::has_aux)(block, x);
  CHECK(floats(aux) == floats(value.second));
  CHECK(floats(state["linear"]["bias"]) == std::vector<float>{1, 1, 1});
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::grad(loss, {.diff_states = {{1, true}}})(block, x);
                 }),
                 "DiffState needs an argument that is differentiated, got argument 1");
  CHECK_MENTIONS(message<rp::TypeError>(
                     [&] { nnx::grad(loss, {.wrt = nnx::OfType<nnx::RngState>})(block, x); }),
                 "the argument must be floating, got u32[] (args[0].dropout.rngs.count)");
}

TEST_CASE("vmap maps modules along axes, also by kinds of state") {
  nnx::Rngs rngs(0);
  const auto make = nnx::vmap([](nnx::Rngs& r) { return Block(r); });
  Block blocks = nnx::split_rngs(make, {.splits = 5})(rngs);
  CHECK(blocks.linear.kernel.shape() == rp::Shape{5, 3, 3});
  const Array x = rp::random::normal(rp::random::key(1), {5, 3});
  const auto apply = nnx::vmap([](Block& b, Array in) { return b(in); });
  CHECK(apply(blocks, x).shape() == rp::Shape{5, 3});
  CHECK(blocks.dropout.rngs->count.get_value().to_vector<int>() == std::vector<int>{1, 1, 1, 1, 1});
  blocks.eval();
  const auto shared_x = nnx::vmap([](Block& b, Array in) { return b(in); },
                                  {.in_axes = {0, std::nullopt}, .out_axes = {1}});
  CHECK(shared_x(blocks, rp::ones({3})).shape() == rp::Shape{3, 5});

  nnx::Rngs other(1);
  Block one(other);
  const nnx::StateAxes axes{{nnx::OfType<nnx::RngState>, 0}, {rp::ellipsis, std::nullopt}};
  const auto batched = nnx::split_rngs(
      nnx::vmap([](Block& b, Array in) { return b(in); }, {.in_axes = {axes, 0}}), {.splits = 5});
  CHECK(batched(one, x).shape() == rp::Shape{5, 3});
  CHECK(one.dropout.rngs->key.shape().empty());
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::vmap([](Block& b, Array in) { return b(in); },
                             {.in_axes = {nnx::StateAxes{{nnx::OfType<nnx::Param>, 0}}, 0}})(blocks,
                                                                                             x);
                 }),
                 "StateAxes must cover every leaf, got ('dropout', 'rngs', 'count')");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] {
        nnx::vmap([](Block& b, Array in) { return b(in); }, {.in_axes = {0, 0, 0}})(blocks, x);
      }),
      "in_axes must have one entry for all or one each, got 3 for 2");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::vmap([](Block& b, Array in) { return b(in); },
                             {.in_axes = {nnx::Carry, 0}})(blocks, x);
                 }),
                 "there is no carry");
}

TEST_CASE("scan carries, stacks and goes along axes") {
  struct Cell : nnx::Module {
    nnx::Param w{rp::array({{1.0, 2.0, 3.0}})};  // steps along axis 1
    nnx::Variable total{Array(rp::zeros({}))};
    nnx::Cache seen{rp::zeros({1, 3})};
    REPRISE_FIELDS(w, total, seen)
  };
  const nnx::StateAxes axes{
      {nnx::OfType<nnx::Param>, 1}, {nnx::OfType<nnx::Cache>, -1}, {rp::ellipsis, nnx::Carry}};
  const auto run = nnx::scan(
      [](Cell& cell, Array carry, Array x) {
        const Array y = carry + rp::sum(cell.w) * x;
        cell.total += x;
        cell.seen.set_value(rp::reshape(y, {1}));
        return std::pair{y, y * 10};
      },
      {.in_axes = {axes, nnx::Carry, 0}, .out_axes = {nnx::Carry, 0}});
  Cell cell;
  const auto [last, ys] = run(cell, Array(0.0), rp::array({1.0, 1.0, 2.0}));
  CHECK(last.item<float>() == 9);
  CHECK(floats(ys) == std::vector<float>{10, 30, 90});
  CHECK(cell.total.get_value().item<float>() == 4);
  CHECK(floats(cell.seen) == std::vector<float>{1, 3, 9});
  CHECK(cell.w.shape() == rp::Shape{1, 3});

  const auto backwards = nnx::scan(
      [](Array carry, Array x) {
        return std::pair{carry * 2 + x, carry};
      },
      {.reverse = true});
  CHECK(backwards(Array(0.0), rp::array({1.0, 2.0})).first.item<float>() == 5);
  CHECK_MENTIONS(
      message<rp::TypeError>([&] {
        nnx::scan(
            [](Cell& c, Array carry) {
              c.total += 1;
              return carry;
            },
            {.in_axes = {std::nullopt, nnx::Carry}, .out_axes = {nnx::Carry}, .length = 3})(
            cell, Array(0.0));
      }),
      "a variable that is the same in all steps cannot be changed, got (0, 'total')");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::scan([](Array carry, Array) {
                     return std::pair{std::vector<Array>{carry, carry}, carry};
                   })(Array(0.0), rp::ones({2}));
                 }),
                 "must have the structure of the carry that is passed, got 2 arrays for 1");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::scan([](Array c) { return c; })(Array(0.0)); }),
                 "in_axes must have one entry for each argument, got 2 for 1");
}

TEST_CASE("lower tells the memory of a step before it runs") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  const auto step = nnx::jit(nnx::value_and_grad([](Block& b, Array x) { return rp::sum(b(x)); }));
  const Array x = rp::ones({8, 3});
  const nnx::Lowered lowered = step.lower(block, x);
  CHECK_MENTIONS(lowered.as_text(), "dot_general");
  CHECK(lowered.compile().memory_analysis().peak_bytes > 0);
  CHECK(lowered.compile().cost_analysis().flops > 0);
  CHECK(block.dropout.rngs->count.get_value().item<int>() == 0);  // nothing ran
  step(block, x);
  CHECK(block.dropout.rngs->count.get_value().item<int>() == 1);
}

TEST_CASE("donated modules give the memory of changed variables to their new values") {
  struct Big : nnx::Module {
    nnx::Param w{rp::ones({1024, 64})}, frozen{rp::ones({1024, 64})};
    REPRISE_FIELDS(w, frozen)
  };
  Big big;
  const auto step = nnx::jit(
      [](Big& b, Array x) {
        b.w.set_value(b.w * x + b.frozen);
        return x + 1;
      },
      {.donate_argnums = {0}});
  const Array kept = big.frozen;
  const auto analysis = step.lower(big, Array(2.0)).compile().memory_analysis();
  CHECK(analysis.alias_bytes == 1024 * 64 * sizeof(float));
  for (int i = 0; i < 3; ++i) {
    const float* const before = big.w.get_value().data<float>().data();
    step(big, Array(2.0));
    CHECK(big.w.get_value().data<float>().data() == before);
  }
  CHECK(step.lower(big, Array(2.0)).compile().memory_analysis().copied_donations == 0);
  CHECK(big.w[0][0].item<float>() == 15);
  CHECK(kept[0][0].item<float>() == 1);
  // A module that is passed by value shares its variables.
  const auto by_value =
      nnx::jit([](Big b, Array x) { return b.frozen * x; }, {.donate_argnums = {0, 1}});
  CHECK(by_value(big, Array(2.0)).shape() == rp::Shape{1024, 64});
  CHECK(big.frozen[0][0].item<float>() == 1);
  const Array held = big.w;  // somebody else reads the old value: it is copied
  step(big, Array(2.0));
  CHECK(held[0][0].item<float>() == 15);
  CHECK(big.w[0][0].item<float>() == 31);
}

TEST_CASE("plain transforms see a module as its state") {
  nnx::Rngs rngs(0);
  Block block(rngs);
  block.eval();
  const auto [graphdef, state] = nnx::split(block);
  const auto apply = rp::jit([&def = graphdef](nnx::State s, Array x) {
    Block b = nnx::merge(def, s);
    return rp::sum(b(x));
  });
  const Array x = rp::ones({3});
  CHECK(apply(state, x).item<float>() == doctest::Approx(rp::sum(block(x)).item<float>()));
}

namespace {

struct Sine {};
struct Cosine {};
struct OtherParam {
  struct Param : nnx::VariableKind<Param> {
    using VariableKind::VariableKind;
  };
};

}  // namespace

TEST_CASE("one nnx::jit of a generic function runs the program of the arguments' C++ types") {
  nnx::Linear model(2, 2, nnx::Rngs(0));
  const auto sum_all = nnx::jit([](nnx::Linear&, auto tree) {
    Array sum = 0.0;
    for (const Array& leaf : rp::tree_leaves(tree)) sum = sum * 10.0 + leaf;
    return std::pair{sum, tree};
  });
  CHECK(sum_all(model, std::pair{Array(1.0), Array(2.0)}).first.item<double>() == 12);
  CHECK(sum_all(model, std::vector<Array>{1.0, 2.0}).second.size() == 2);
  const auto by_tag = nnx::jit([](nnx::Linear&, Array x, auto tag) {
    if constexpr (std::is_same_v<decltype(tag), Sine>)
      return rp::sin(x);
    else
      return rp::cos(x);
  });
  CHECK(by_tag(model, Array(1.0), Sine{}).item<double>() == doctest::Approx(std::sin(1.0)));
  CHECK(by_tag(model, Array(1.0), Cosine{}).item<double>() == doctest::Approx(std::cos(1.0)));
}

TEST_CASE("kinds of one name, and keys that look like other keys, are told apart") {
  const nnx::Kind& ours = nnx::kind_of<OtherParam::Param>();
  CHECK(ours.name == nnx::kind_of<nnx::Param>().name);
  const nnx::StateLayout a({{.path = {"w"}, .kind = &ours}}),
      b({{.path = {"w"}, .kind = &nnx::kind_of<nnx::Param>()}});
  CHECK(!(a == b));
  const nnx::StateLayout c({{.path = {"w", "b"}}}), d({{.path = {"w', 'b"}}});
  CHECK(!(c == d));
  nnx::Dict<nnx::Param> two{{"a", nnx::Param(Array(1.0))}, {"b", nnx::Param(Array(2.0))}};
  nnx::Dict<nnx::Param> one{{"a' variable Param  0 'b", nnx::Param(Array(1.0))}};
  CHECK(!(nnx::graphdef(two) == nnx::graphdef(one)));
}
