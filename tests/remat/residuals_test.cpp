// Residual reports: sizes, reasons, makers inside of calls and readers, as exact texts.
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <sstream>

namespace rp = reprise;
using rp::Array;
namespace P = rp::checkpoint_policies;

namespace {

// The lines that reports mention, by the names that the expected texts use.
std::map<int, std::string> place_names;
Array at_line(int line, const char* name, const Array& x) {
  place_names[line] = name;
  return x;
}
#define AT(name, expression) at_line(__LINE__, name, expression)

Array g(Array W, Array x) {
  const Array y = AT("dot", rp::dot(W, x));
  return AT("sin", rp::sin(y));
}
Array two_layers(Array W1, Array W2, Array x) {
  const Array h = g(W1, x);
  return g(W2, h);
}

// A report without file names, lines and columns: "mul at @sin (g)".
template <class F, class... A>
std::string report(const F& f, const A&... args) {
  std::ostringstream out;
  out << rp::residual_report(f, args...);
  const std::string text = out.str();
  const std::regex place(R"(residuals_test\.cpp:(\d+)(:\d+)?)");
  std::string named;
  std::size_t end = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), place), last; it != last; ++it) {
    named += text.substr(end, static_cast<std::size_t>(it->position()) - end);
    const auto name = place_names.find(std::stoi((*it)[1]));
    named += name == place_names.end() ? "@" : "@" + name->second;
    end = static_cast<std::size_t>(it->position() + it->length());
  }
  return "\n" + named + text.substr(end);
}

const Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), x = rp::ones({4}),
            Ws = rp::ones({8, 4, 4});

}  // namespace

TEST_CASE("without checkpoint the derivative rules decide") {
  CHECK(report(two_layers, RP_ARGS(W1, W2, x)) == R"(
f32[5,4] from the argument W1
  size     80 bytes
  saved    an argument
  read by  dot_general at @dot (g)
f32[6,5] from the argument W2
  size     120 bytes
  saved    an argument
  read by  dot_general at @dot (g)
f32[4] from the argument x
  size     16 bytes
  saved    an argument
  read by  dot_general at @dot (g)
f32[5] output of sin from @sin (g)
  size     20 bytes
  saved    no checkpoint: the derivative reads it
  read by  dot_general at @dot (g)
f32[5] output of cos from @sin (g)
  size     20 bytes
  saved    no checkpoint: the derivative reads it
  read by  mul at @sin (g)
f32[6] output of cos from @sin (g)
  size     24 bytes
  saved    no checkpoint: the derivative reads it
  read by  mul at @sin (g)
total      6 values, 280 bytes; computed by the forward pass: 3 values, 64 bytes
)");
}

TEST_CASE(
    "a checkpoint's input and a value its policy allows are told apart, whatever the policy "
    "allows") {
  const auto layer = rp::checkpoint(g, {.policy = P::everything_saveable});
  auto f = [&](Array a, Array b, Array v) {
    v = layer(a, v);
    return layer(b, v);
  };
  const rp::ResidualReport r = rp::residual_report(f, W1, W2, x);
  REQUIRE(r.residuals.size() == 6);
  CHECK(r.residuals[0].reason == "an argument");
  CHECK(r.residuals[3].origin.find("output of sin") == 0);
  CHECK(r.residuals[3].reason.find("an input of the checkpoint at residuals_test.cpp:") == 0);
  CHECK(r.residuals[3].policy.empty());
  CHECK(r.residuals[4].origin.find("output of cos") == 0);
  CHECK(r.residuals[4].reason == "policy everything_saveable allows it");
  CHECK(r.residuals[4].policy == "everything_saveable");
  CHECK(r.bytes() == 280);
  CHECK(r.computed_bytes() == 64);
}

TEST_CASE("of a composed policy the parts that allow a value are named") {
  auto f = [](Array w, Array v) {
    const Array h = g(w, v);
    const Array named = AT("name", rp::checkpoint_name(h, "h"));
    return AT("exp", rp::exp(rp::sin(named)));
  };
  const auto c = rp::checkpoint(f, {.policy = P::dots_saveable | P::save_only_these_names("h")});
  CHECK(report(c, RP_ARGS(W1, x)) == R"(
f32[5,4] from the argument W1
  size     80 bytes
  saved    an argument
  read by  dot_general at @dot (g), in checkpoint
f32[4] from the argument x
  size     16 bytes
  saved    an argument
  read by  dot_general at @dot (g), in checkpoint
f32[5] output of dot_general from @dot (g)
  size     20 bytes
  saved    policy (dots_saveable | save_only_these_names('h')) allows it, by dots_saveable
  read by  cos at @sin (g), in checkpoint
f32[5] named 'h' from @name (<lambda>)
  size     20 bytes
  saved    policy (dots_saveable | save_only_these_names('h')) allows it, by save_only_these_names('h')
  read by  sin at @exp (<lambda>), in checkpoint
           cos at @exp (<lambda>), in checkpoint
total      4 values, 136 bytes; computed by the forward pass: 2 values, 40 bytes
)");
  CHECK((P::dots_saveable | P::save_only_these_names("h") | P::bytes_at_most(4))
            .alternatives()
            .size() == 3);
}

TEST_CASE("values made inside of jitted functions show the equation that made them") {
  const auto inner = rp::jit([](Array v) { return AT("inner", rp::sin(v)); }, {.name = "inner"});
  auto f = [&](Array v) {
    const auto outer =
        rp::jit([&](Array u) { return AT("outer", rp::exp(inner(u))); }, {.name = "outer"});
    return AT("call", outer(v));
  };
  CHECK(report(f, RP_ARGS(x)) == R"(
f32[4] output of jitted function 'outer' from @call (<lambda>)
  size     16 bytes
  made by  exp at @outer (<lambda>), in jit 'outer'
  saved    no checkpoint: the derivative reads it
  read by  mul at @outer (<lambda>), in jit 'outer'
f32[4] output of jitted function 'outer' from @call (<lambda>)
  size     16 bytes
  made by  cos at @inner (<lambda>), in jit 'inner', in jit 'outer'
  saved    no checkpoint: the derivative reads it
  read by  mul at @inner (<lambda>), in jit 'inner', in jit 'outer'
total      2 values, 32 bytes; computed by the forward pass: 2 values, 32 bytes
)");
}

TEST_CASE("a scan stacks one value per step, and its carry shows who makes it") {
  auto step = [](Array c, Array w) {
    const Array y = AT("dot", rp::dot(w, c));
    return std::pair{AT("sin", rp::sin(y)), rp::none};
  };
  auto net = [&](Array ws, Array v) { return AT("scan", rp::scan(step, v, ws).first); };
  CHECK(report(net, RP_ARGS(Ws, x)) == R"(
f32[8,4,4] from the argument Ws
  size     512 bytes
  saved    an argument
  read by  dot_general at @dot (<lambda>), in scan of 8 steps
f32[8,4] output of scan from @scan (<lambda>)
  size     128 bytes, 8 x f32[4]
  made by  sin at @sin (<lambda>), in carry of scan of 8 steps
  saved    no checkpoint: the derivative reads it
  read by  dot_general at @dot (<lambda>), in scan of 8 steps
f32[8,4] output of scan from @scan (<lambda>)
  size     128 bytes, 8 x f32[4]
  made by  cos at @sin (<lambda>), in scan of 8 steps
  saved    no checkpoint: the derivative reads it
  read by  mul at @sin (<lambda>), in scan of 8 steps
total      3 values, 768 bytes; computed by the forward pass: 2 values, 256 bytes
)");
  const auto layer = rp::checkpoint(step, {.policy = P::dots_saveable});
  auto checkpointed = [&](Array ws, Array v) { return AT("scan", rp::scan(layer, v, ws).first); };
  CHECK(report(checkpointed, RP_ARGS(Ws, x)) == R"(
f32[8,4,4] from the argument Ws
  size     512 bytes
  saved    an argument
  read by  dot_general at @dot (<lambda>), in checkpoint, in scan of 8 steps
f32[8,4] output of scan from @scan (<lambda>)
  size     128 bytes, 8 x f32[4]
  made by  dot_general at @dot (<lambda>), in scan of 8 steps
  saved    policy dots_saveable allows it
  read by  cos at @sin (<lambda>), in checkpoint, in scan of 8 steps
f32[8,4] output of scan from @scan (<lambda>)
  size     128 bytes, 8 x f32[4]
  made by  sin at @sin (<lambda>), in carry of scan of 8 steps
  saved    an input of the checkpoint at @scan (<lambda>)
  read by  dot_general at @dot (<lambda>), in checkpoint, in scan of 8 steps
total      3 values, 768 bytes; computed by the forward pass: 2 values, 256 bytes
)");
}

TEST_CASE("scans inside of scans count the steps of both") {
  auto nested = [](Array v) {
    auto inner = [](Array c, Array u) { return std::pair{rp::sin(c * u), rp::none}; };
    auto outer = [&](Array c, Array us) {
      return std::pair{rp::scan(inner, c, us).first, rp::none};
    };
    return rp::scan(outer, Array(0.5f), v).first;
  };
  const rp::ResidualReport r = rp::residual_report(nested, rp::ones({8, 3}));
  REQUIRE(r.residuals.size() == 3);
  CHECK(r.residuals[2].steps == std::vector<std::int64_t>{8, 3});
  std::ostringstream out;
  out << r;
  CHECK(out.str().find("size     96 bytes, 8 x 3 x f32[]") != std::string::npos);
}

TEST_CASE("a scan inside of a checkpoint shows what the policy let through") {
  auto net = [](Array ws, Array v) {
    auto step = [](Array c, Array w) {
      const Array y = AT("dot", rp::dot(w, c));
      return std::pair{AT("sin", rp::sin(y)), rp::none};
    };
    return AT("scan", rp::scan(step, v, ws).first);
  };
  CHECK(report(rp::checkpoint(net, {.policy = P::dots_saveable}), RP_ARGS(Ws, x)) == R"(
f32[8,4,4] from the argument Ws
  size     512 bytes
  saved    an argument
  read by  dot_general at @dot (<lambda>), in scan of 8 steps, in checkpoint
f32[4] from the argument x
  size     16 bytes
  saved    an argument
  read by  scan at @scan (<lambda>), in checkpoint
f32[8,4] output of closed_call from @scan (<lambda>)
  size     128 bytes, 8 x f32[4]
  made by  dot_general at @dot (<lambda>), in scan of 8 steps
  saved    policy dots_saveable allows it
  read by  sin at @sin (<lambda>), in scan of 8 steps, in checkpoint
           cos at @sin (<lambda>), in scan of 8 steps, in checkpoint
total      3 values, 656 bytes; computed by the forward pass: 1 value, 128 bytes
)");
}

TEST_CASE("each branch of a cond shows what it puts into a saved value") {
  auto f = [](Array p, Array v) {
    auto yes = [](Array u) { return AT("yes", rp::sin(u)); };
    auto no = [](Array u) { return AT("no", rp::exp(u)); };
    return AT("cond", rp::cond(p, yes, no, v));
  };
  CHECK(report(f, rp::arg("p", Array(true)), RP_ARGS(x)) == R"(
i32[] output of convert_element_type from @cond (<lambda>)
  size     4 bytes
  saved    no checkpoint: the derivative reads it
  read by  cond at @cond (<lambda>)
f32[4] output of cond from @cond (<lambda>)
  size     16 bytes
  made by  exp at @no (<lambda>), in branch 0 of cond
           cos at @yes (<lambda>), in branch 1 of cond
  saved    no checkpoint: the derivative reads it
  read by  mul at @no (<lambda>), in branch 0 of cond
           mul at @yes (<lambda>), in branch 1 of cond
total      2 values, 20 bytes; computed by the forward pass: 2 values, 20 bytes
)");
  auto product = [](Array p, Array v) {
    return rp::cond(
        p, [](Array u) { return rp::sin(u); }, [](Array u) { return u * u * u; }, v);
  };
  // A branch that has nothing to save is not listed, an operand of the cond is followed outside.
  const rp::ResidualReport r = rp::residual_report(product, rp::arg("p", Array(true)), RP_ARGS(x));
  std::ostringstream out;
  for (const rp::ResidualDetail& d : r.residuals) {
    for (const rp::EquationPlace& place : d.made_by) out << place.what << "; ";
  }
  CHECK(out.str() == "convert_element_type; argument x; cos; mul; ");
}

TEST_CASE("nested checkpoints and offloaded values show the equation behind them") {
  auto inner = rp::checkpoint([](Array v) { return AT("inner", rp::sin(v)); });
  auto outer = rp::checkpoint(
      [&](Array v) {
        const Array y = AT("call", inner(v));
        return AT("exp", rp::exp(y));
      },
      {.policy = P::everything_saveable});
  CHECK(report(outer, RP_ARGS(x)) == R"(
f32[4] output of remat2 from @call (<lambda>)
  size     16 bytes
  made by  cos at @inner (<lambda>), in checkpoint
  saved    policy everything_saveable allows it
  read by  mul at @inner (<lambda>), in checkpoint, in checkpoint
f32[4] output of exp from @exp (<lambda>)
  size     16 bytes
  saved    policy everything_saveable allows it
  read by  mul at @exp (<lambda>), in checkpoint
total      2 values, 32 bytes; computed by the forward pass: 2 values, 32 bytes
)");
  auto offload =
      rp::checkpoint([](Array v) { return g(W1, v); },
                     {.policy = P::offload_dot_with_no_batch_dims("device", "pinned_host")});
  CHECK(report(offload, RP_ARGS(x)).find(R"(
f32<host>[5] output of device_put from 
  size     20 bytes
  made by  dot_general at @dot (g)
  saved    policy offload_dot_with_no_batch_dims('device', 'pinned_host') moves it to the host
  read by  cos at @sin (g), in checkpoint
)") != std::string::npos);
}

TEST_CASE("literals, constants and functions that save nothing") {
  auto f = [](Array v) { return AT("mul", 2.0 * v * x); };
  CHECK(report(f, RP_ARGS(x)) == R"(
f32[] from a literal
  size     4 bytes
  saved    a literal
  read by  mul at @mul (<lambda>)
f32[4] from a constant
  size     16 bytes
  saved    a constant
  read by  mul at @mul (<lambda>)
total      2 values, 20 bytes; computed by the forward pass: 0 values, 0 bytes
)");
  CHECK(report([](Array v) { return v + 1.0; }, RP_ARGS(x)) ==
        "\ntotal      0 values, 0 bytes; computed by the forward pass: 0 values, 0 bytes\n");
  CHECK(report([](Array v) { return rp::sin(v); }, rp::arg("v", rp::zeros({0, 3})))
            .find("size     0 bytes") != std::string::npos);
}

TEST_CASE("the readers of one value are counted when there are many") {
  auto f = [](Array w, Array v) {
    Array y = rp::dot(w, v);
    y = rp::dot(w, y);
    y = rp::dot(w, y);
    y = rp::dot(w, y);
    y = rp::dot(w, y);
    y = rp::dot(w, y);
    y = rp::dot(w, y);
    return rp::dot(w, y);
  };
  const Array w = rp::ones({4, 4});
  const rp::ResidualReport r = rp::residual_report(f, RP_ARGS(w, x));
  CHECK(r.residuals[0].read_by.size() == 8);
  std::ostringstream out;
  out << r;
  CHECK(out.str().find("           and 2 more\n") != std::string::npos);
}

TEST_CASE(
    "the report and the lines of print_saved_residuals list the same values in the same order") {
  const auto c = rp::checkpoint(two_layers, {.policy = P::dots_saveable});
  const auto lines = rp::saved_residuals(c, RP_ARGS(W1, W2, x));
  const auto details = rp::residual_report(c, RP_ARGS(W1, W2, x)).residuals;
  REQUIRE(lines.size() == details.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i].origin == details[i].origin);
    CHECK(lines[i].bytes == details[i].bytes);
  }
}
