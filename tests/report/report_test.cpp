#include "reprise/report.h"

#include "error_text.h"
#include "random_program.h"
#include "report_data.h"
#include "reprise/errors.h"
#include "transformer.h"
#include <reprise/optim.h>
#include <reprise/reprise.h>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;
using namespace report_data;

namespace {

constexpr std::int64_t n = 256;

Array layer(Array w, Array x) { return rp::tanh(rp::matmul(x, w)); }

struct Parameters {
  Array a, b, c;
};
Parameters parameters() {
  return {rp::ones({n, n}) * 0.01, rp::ones({n, n}) * 0.02, rp::ones({n, n}) * 0.03};
}

Array loss(Parameters p, Array x) { return rp::sum(layer(p.c, layer(p.b, layer(p.a, x)))); }
auto checkpointed(const rp::Policy& policy) {
  return [policy](Parameters p, Array x) { return rp::checkpoint(loss, {.policy = policy})(p, x); };
}

Array scanned_loss(Array ws, Array x) {
  const auto body = rp::checkpoint([](Array h, Array w) {
    return std::pair{layer(w, h), rp::sum(h)};
  });
  const auto [h, sums] = rp::scan([&](Array carry, Array w) { return body(carry, w); }, x, ws);
  return rp::sum(h) + rp::sum(sums);
}

Array branching_loss(Array x, Array w) {
  return rp::sum(rp::cond(
      rp::sum(x) > 0.0, [](Array y, Array v) { return rp::sin(rp::matmul(y, v)); },
      [](Array y, Array v) { return rp::matmul(rp::matmul(y, v), v); }, x, w));
}

Array counted_loop(Array x, Array w) {
  return rp::while_loop([](std::pair<Array, Array> s) { return s.first < 5; },
                        [w](std::pair<Array, Array> s) {
                          return std::pair{s.first + 1, layer(w, s.second)};
                        },
                        std::pair{rp::array(0), x})
      .second;
}

auto offloading(std::string directory) {
  auto f = [](Array w, Array x) {
    const auto block = rp::checkpoint(
        [](Array v, Array y) { return layer(v, rp::checkpoint_name(layer(v, y), "middle")); },
        {.policy = policies::save_and_offload_only_these_names(
             {{}, {"middle"}, "device", "pinned_host"})});
    return rp::sum(block(w, block(w, block(w, x))));
  };
  return rp::jit(rp::value_and_grad(f), {.spill_directory = std::move(directory)})
      .lower(rp::ones({n, n}), rp::ones({n, n}))
      .compile();
}

// The gradients of several batches, added up by a loop: both passes are inside of its body, and so
// is what they offload.
auto accumulating(std::string directory) {
  auto f = [](Array w, Array batches) {
    const auto block = rp::checkpoint(
        [](Array v, Array y) { return layer(v, rp::checkpoint_name(layer(v, y), "middle")); },
        {.policy = policies::save_and_offload_only_these_names(
             {{}, {"middle"}, "device", "pinned_host"})});
    const auto gradient =
        rp::grad([&](Array v, Array y) { return rp::sum(block(v, block(v, y))); });
    const Array sum = rp::scan(
                          [&](Array c, Array y) {
                            return std::pair{c + gradient(w, y), rp::sum(c)};
                          },
                          rp::zeros({n, n}), batches)
                          .first;
    return w - 0.1 * rp::tanh(sum);
  };
  return rp::jit(f, {.spill_directory = std::move(directory)})
      .lower(rp::ones({n, n}), rp::ones({4, n, n}))
      .compile();
}

template <class F>
void check_peak(const char* program, const rp::Compiled<F>& compiled) {
  INFO(std::string(program));
  const json data = data_of(compiled);
  const json& p = data["programs"][0];
  const std::vector<std::size_t> sums = stacked(p);
  const rp::MemoryAnalysis memory = compiled.memory_analysis();
  CHECK(*std::max_element(sums.begin(), sums.end()) == memory.peak_bytes);
  CHECK(p["memory"]["peak"] == memory.peak_bytes);
  std::size_t arguments = 0;
  for (const json& v : p["values"]) {
    arguments += v[holder] == argument ? v[bytes].get<std::size_t>() : 0;
    CHECK(v[first] <= v[last]);
    CHECK(v[last] < p["steps"].size());
  }
  CHECK(arguments == memory.argument_bytes);
  // What a step reads and writes is among the values, and alive: except for what ends by giving its
  // place away.
  for (std::size_t i = 0; i < p["steps"].size(); ++i) {
    for (std::size_t w : p["steps"][i][writes])
      CHECK((p["values"][w][first] <= i && i <= p["values"][w][last]));
    for (std::size_t r : p["steps"][i][reads])
      CHECK((p["values"][r][first] <= i && i <= p["values"][r][last].get<std::size_t>() + 1));
  }
}

std::string temporary_folder() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("reprise_report_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return folder.string();
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the highest point of the picture is the peak of the plan") {
  const Array x = rp::ones({n, n}), ws = rp::ones({6, n, n}) * 0.01;
  check_peak("no policy", rp::jit(rp::value_and_grad(loss)).lower(parameters(), x).compile());
  check_peak("nothing saved", rp::jit(rp::value_and_grad(checkpointed(policies::nothing_saveable)))
                                  .lower(parameters(), x)
                                  .compile());
  check_peak("products saved", rp::jit(rp::value_and_grad(checkpointed(policies::dots_saveable)))
                                   .lower(parameters(), x)
                                   .compile());
  check_peak("no derivative", rp::jit(loss).lower(parameters(), x).compile());
  check_peak("scan", rp::jit(rp::value_and_grad<0, 1>(scanned_loss)).lower(ws, x).compile());
  check_peak("cond", rp::jit(rp::value_and_grad<0, 1>(branching_loss)).lower(x, x).compile());
  check_peak("while", rp::jit(counted_loop).lower(x, x).compile());
  check_peak(
      "convolution",
      rp::jit(rp::grad([](Array w, Array image) {
        const Array y = rp::lax::conv_general_dilated(image, w, {.padding = {{1, 1}, {1, 1}}});
        return rp::sum(rp::tanh(y));
      }))
          .lower(rp::ones({8, 8, 3, 3}), rp::ones({4, 8, 32, 32}))
          .compile());
  check_peak("offloaded, in memory", offloading(""));
  check_peak("offloaded, on disk", offloading(temporary_folder()));
  check_peak("offloaded inside of a loop, in memory", accumulating(""));
  check_peak("offloaded inside of a loop, on disk", accumulating(temporary_folder()));
  check_peak("a while loop of numbers", rp::jit([](Array i) {
                                          return rp::while_loop([](Array k) { return k < 5; },
                                                                [](Array k) { return k + 1; }, i);
                                        })
                                            .lower(rp::array(0))
                                            .compile());
  check_peak("donated", rp::jit([](Array a, Array b) { return rp::sin(rp::matmul(a, b)) + a; },
                                {.donate_argnums = {0}})
                            .lower(x, x)
                            .compile());
  check_peak("nothing to compute", rp::jit([](Array a) { return a; }).lower(x).compile());
  check_peak("a scan in a branch of a scan",
             rp::jit([](Array a, Array w) {
               return rp::scan(
                          [w](Array c, Array v) {
                            return std::pair{
                                rp::cond(
                                    rp::sum(c) > 0.0,
                                    [&](Array d) {
                                      return scanned_loss(rp::reshape(w, {1, n, n}), d) * d;
                                    },
                                    [](Array d) { return rp::sin(d); }, c),
                                v};
                          },
                          a, a)
                   .first;
             })
                 .lower(x, x)
                 .compile());
}

TEST_CASE("the highest point is the peak for random programs and their gradients") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    const auto program = random_program::make(seed);
    const auto compiled = rp::jit(rp::value_and_grad(program.loss)).lower(program.args).compile();
    const json p = data_of(compiled)["programs"][0];
    const std::vector<std::size_t> sums = stacked(p);
    CHECK(*std::max_element(sums.begin(), sums.end()) == compiled.memory_analysis().peak_bytes);
  }
}

TEST_CASE("steps are told apart: forward, recomputed, backward, after") {
  const Array x = rp::ones({n, n});
  CHECK(passes(data_of(rp::jit(loss).lower(parameters(), x).compile())["programs"][0]) ==
        "forward");

  const json nothing = data_of(rp::jit(rp::value_and_grad(checkpointed(policies::nothing_saveable)))
                                   .lower(parameters(), x)
                                   .compile())["programs"][0];
  CHECK(passes(nothing) == "forward recompute backward");
  const double product = 2.0 * n * n * n;
  CHECK(nothing["cost"]["recomputed_matmul"] == 3 * product);
  CHECK(nothing["cost"]["matmul"] == (3 + 3 + 5) * product);  // x gets no gradient

  const json everything =
      data_of(rp::jit(rp::value_and_grad(checkpointed(policies::everything_saveable)))
                  .lower(parameters(), x)
                  .compile())["programs"][0];
  CHECK(everything["cost"]["recomputed_matmul"] == 0);

  const auto step = [](Parameters p, Array batch) {
    const auto [value, grads] = rp::value_and_grad(loss)(p, batch);
    return std::pair{value, Parameters{p.a - 0.1 * rp::tanh(grads.a), p.b - 0.1 * grads.b,
                                       p.c - 0.1 * rp::matmul(grads.c, grads.c)}};
  };
  const json trained = data_of(rp::jit(step).lower(parameters(), x).compile())["programs"][0];
  CHECK(steps_of(trained, forward) >= 4);
  CHECK(steps_of(trained, backward) >= 5);
  CHECK(steps_of(trained, after) >= 2);
}

TEST_CASE("both passes inside of a loop are told apart, and so is what follows the loop") {
  const json data = data_of(accumulating(""));
  const json& p = data["programs"][0];
  std::array<std::size_t, 4> inside{}, outside{};
  for (const json& s : p["steps"]) {
    auto& counts = s[body] == 0 ? outside : inside;
    ++counts.at(s[step_stage].get<std::size_t>());
  }
  CHECK(inside[forward] > 0);
  CHECK(inside[recompute] > 0);
  CHECK(inside[backward] > 0);
  CHECK(inside[after] > 0);  // the sum of the gradients
  CHECK(outside[backward] == 0);
  CHECK(outside[after] > 0);
}

TEST_CASE("the steps of a loop stand once, with the number of times") {
  const Array x = rp::ones({n, n}), ws = rp::ones({6, n, n}) * 0.01;
  const json data = data_of(rp::jit(rp::value_and_grad<0, 1>(scanned_loss)).lower(ws, x).compile());
  const json& p = data["programs"][0];
  REQUIRE(p["bodies"].size() == 3);
  CHECK(text(data, p["bodies"][1][0]) == "scan, 6 times");
  std::vector<std::string> stages[3];
  for (const json& s : p["steps"])
    stages[s[body].get<std::size_t>()].push_back(std::to_string(s[step_stage].get<int>()));
  CHECK(std::find(stages[1].begin(), stages[1].end(), "2") ==
        stages[1].end());  // the forward loop goes forward only
  CHECK(std::find(stages[2].begin(), stages[2].end(), "1") !=
        stages[2].end());  // the backward loop plays again
  CHECK(std::find(stages[2].begin(), stages[2].end(), "2") != stages[2].end());
  CHECK(std::find(stages[2].begin(), stages[2].end(), "0") == stages[2].end());
  // What the loop carries on for the backward pass is named by the line that makes it.
  const auto kept = std::find_if(p["values"].begin(), p["values"].end(),
                                 [](const json& v) { return v[holder] == residual; });
  REQUIRE(kept != p["values"].end());
  CHECK(text(data, (*kept)[type]) == "f32[6,256,256]");
  CHECK(text(data, (*kept)[operation]) == "tanh");
  CHECK_MENTIONS(text(data, (*kept)[at]), "(layer)");
}

TEST_CASE(
    "both lists: what the rules save is what residual_report says, what the plan keeps is read "
    "later") {
  const transformer::Size size{.layers = 2};
  const transformer::Model model = transformer::initial(size);
  const Array tokens = transformer::tokens_of(size);
  for (const rp::Policy& policy :
       {rp::Policy(policies::everything_saveable), rp::Policy(policies::nothing_saveable),
        rp::Policy(policies::dots_with_no_batch_dims_saveable)}) {
    INFO(policy.str());
    const auto wrap = [&](const auto& block) { return rp::checkpoint(block, {.policy = policy}); };
    const auto f = [&](transformer::Model m, Array t) {
      return transformer::loss(m, t, size, wrap);
    };
    const json data = data_of(rp::jit(rp::value_and_grad(f)).lower(model, tokens).compile());
    const json& p = data["programs"][0];
    std::vector<std::string> listed, expected;
    for (const json& r : p["rules"]) {
      if (r[computed] == 1)
        listed.push_back(text(data, r[rule_type]) + " " + text(data, r[origin]) + ": " +
                         text(data, r[reason]));
    }
    for (const rp::ResidualDetail& r :
         rp::residual_report([&](transformer::Model m) { return f(m, tokens); }, model).residuals) {
      if (r.computed) expected.push_back(rp::str(r.type, " ", r.origin, ": ", r.reason));
    }
    std::sort(listed.begin(), listed.end());
    std::sort(expected.begin(), expected.end());
    CHECK(listed == expected);

    for (const json& v : p["values"]) {
      const bool is_kept = !text(data, v[because]).empty();
      if (v[holder] == residual) CHECK(is_kept);
      if (!is_kept) continue;
      CHECK(v[stage] == forward);
      CHECK_MENTIONS(text(data, v[at]), "transformer.h:");
    }
  }
}

TEST_CASE("offloaded values lie on the host and are kept by the plan") {
  const json data = data_of(offloading(temporary_folder()));
  const json& p = data["programs"][0];
  CHECK(p["memory"]["on_disk"] == true);
  std::size_t on_host = 0;
  for (const json& v : p["values"]) {
    if (v[holder] != host) continue;
    on_host += v[bytes].get<std::size_t>();
    CHECK(text(data, v[because]) == "a policy moved it to the host");
    CHECK_MENTIONS(text(data, v[place]), "host+");
  }
  CHECK(on_host == p["memory"]["host"]);
}

TEST_CASE("results that take over donated arguments cost nothing") {
  const Array x = rp::ones({n, n});
  const json p =
      data_of(rp::jit([](Array a, Array b) { return rp::sin(a) * b; }, {.donate_argnums = {0}})
                  .lower(x, x)
                  .compile())["programs"][0];
  CHECK(p["memory"]["alias"] == n * n * 4);
  CHECK(p["memory"]["peak"] == 0);
  const auto result = std::find_if(p["values"].begin(), p["values"].end(),
                                   [](const json& v) { return v[holder] == output; });
  REQUIRE(result != p["values"].end());
  CHECK((*result)[held] == 0);
  CHECK((*result)[bytes] == n * n * 4);
}

TEST_CASE("several programs keep their order and names, whatever the names are") {
  const std::string wild =
      "</script><b>\"quoted\"\\ \n \xe2\x80\xa8 p\xc3\xa4per \xf0\x9f\x90\xab \xff\xfe";
  const auto compiled = rp::jit(loss, {.name = "</title><script>alert(1)</script>"})
                            .lower(parameters(), rp::ones({n, n}))
                            .compile();
  const std::string page = rp::detail::report_page({{wild, compiled}, {"b", compiled}});
  const json data = data_of(page);
  CHECK(data["programs"][0]["name"] ==
        "</script><b>\"quoted\"\\ \n \xe2\x80\xa8 p\xc3\xa4per \xf0\x9f\x90\xab "
        "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(data["programs"][1]["name"] == "b");
  CHECK(page.find(wild) == std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("alert(1)<") == std::string::npos);
}

TEST_CASE("write_report replaces the file or leaves it as it was") {
  const std::string folder = temporary_folder(), path = folder + "/report.html";
  std::ofstream(path) << "before";
  const auto compiled = rp::jit(loss).lower(parameters(), rp::ones({n, n})).compile();
  rp::write_report(compiled, path);
  CHECK(begins(content_of(path), "<!doctype html>"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder),
                      std::filesystem::directory_iterator()) == 1);
  std::filesystem::remove_all(folder);
  CHECK(message<rp::RuntimeError>([&] { rp::write_report(compiled, path); }) ==
        "write_report: cannot write '" + path + "', got No such file or directory");
  CHECK(message<rp::RuntimeError>([&] { rp::write_report(compiled, "/dev/null/report.html"); }) ==
        "write_report: cannot write '/dev/null/report.html', got Not a directory");
}

TEST_CASE("write_report needs programs of different names") {
  const auto compiled = rp::jit(loss).lower(parameters(), rp::ones({n, n})).compile();
  CHECK(message<rp::TypeError>([&] {
          rp::write_report(std::vector<rp::NamedCompiled>{}, "never.html");
        }) == "write_report: one compiled function or more is needed, got none");
  CHECK(message<rp::TypeError>([&] {
          rp::write_report({{"a", compiled}, {"a", compiled}}, "never.html");
        }) == "write_report: names must differ, got 'a' twice");
}
