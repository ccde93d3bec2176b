// Pages of real programs, those that tests/report/browser.py opens: it names the folder to write
// them to.
#include "report_data.h"
#include "transformer.h"
#include <reprise/report.h>

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;
using namespace report_data;

namespace {

std::filesystem::path folder() {
  const char* asked = std::getenv("REPRISE_REPORT_FOLDER");
  const std::filesystem::path made = asked != nullptr
                                         ? asked
                                         : std::filesystem::temp_directory_path() /
                                               ("reprise_pages_" + std::to_string(::getpid()));
  std::filesystem::create_directories(made);
  return made;
}

// The page that was written, as text.
std::string written(const std::string& name, const std::vector<rp::NamedCompiled>& programs) {
  const std::filesystem::path path = folder() / name;
  rp::write_report(programs, path.string());
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

auto compiled(const rp::Policy& policy) {
  const transformer::Size size;
  const auto wrap = [policy](const auto& block) {
    return [block, policy](transformer::Block p, Array x) {
      return policy.defined() ? rp::checkpoint(block, {.policy = policy})(p, x) : block(p, x);
    };
  };
  const auto step = [size, wrap](transformer::Model at, Array text) {
    return rp::value_and_grad(
        [&](transformer::Model m) { return transformer::loss(m, text, size, wrap); })(at);
  };
  const transformer::Model model = transformer::initial(size);
  const Array tokens = transformer::tokens_of(size);
  return rp::jit(step, {.name = "transformer"}).lower(RP_ARGS(model, tokens)).compile();
}

}  // namespace

TEST_CASE("a page for three policies of a transformer") {
  const std::string page = written(
      "transformer.html",
      {{"none", compiled({})},
       {"nothing_saveable", compiled(policies::nothing_saveable)},
       {"dots_with_no_batch_dims_saveable", compiled(policies::dots_with_no_batch_dims_saveable)}});
  const json programs = data_of(page)["programs"];
  REQUIRE(programs.size() == 3);
  const auto peak = [&](int i) { return programs[i]["memory"]["peak"].get<std::size_t>(); };
  CHECK(peak(1) < peak(2));
  CHECK(peak(2) < peak(0));
}

TEST_CASE("a page for loops, offloaded values and names that no one expects") {
  const Array x = rp::ones({128, 128}), ws = rp::ones({6, 128, 128}) * 0.01;
  const auto block = rp::checkpoint(
      [](Array c, Array w) {
        return std::pair{rp::tanh(rp::matmul(c, rp::checkpoint_name(rp::sin(w) * c, "kept"))),
                         rp::sum(c)};
      },
      {.policy =
           policies::save_and_offload_only_these_names({{}, {"kept"}, "device", "pinned_host"})});
  const auto looped = [block](Array y, Array w) {
    return rp::sum(rp::scan([&](Array c, Array v) { return block(c, v); }, y, w).first);
  };
  const auto chosen = [](Array y) {
    return rp::sum(rp::cond(
        rp::sum(y) > 0.0, [](Array z) { return rp::matmul(z, z); },
        [](Array z) { return rp::sin(z); }, y));
  };
  const auto step = [](Array p, Array y) {
    return p - 0.1 * rp::grad([y](Array q) { return rp::sum(rp::tanh(rp::matmul(y, q))); })(p);
  };
  const std::string page = written(
      "others.html",
      {{"scan, offloaded to disk",
        rp::jit(rp::grad(looped), {.spill_directory = folder().string()}).lower(x, ws).compile()},
       {"cond", rp::jit(rp::grad(chosen)).lower(x).compile()},
       {"</script><script>window.harmed = 1</script>",
        rp::jit(step, {.donate_argnums = {0}}).lower(x, x).compile()},
       {"<img src=x onerror='window.harmed = 1'> & \"p\xc3\xa4per\"",
        rp::jit([](Array a) { return a; }).lower(x).compile()}});
  CHECK(data_of(page)["programs"].size() == 4);
}

TEST_CASE("a program of ten thousand equations fits into two million bytes") {
  const auto deep = [](Array w, Array x) {
    const auto block = rp::checkpoint([](Array v, Array y) {
      return rp::tanh(rp::matmul(rp::sin(y) * 0.5 + rp::cos(y), v)) + y * 0.1;
    });
    for (int i = 0; i < 700; ++i) x = block(w, x);
    return rp::sum(x);
  };
  const auto program =
      rp::jit(rp::value_and_grad(deep)).lower(rp::ones({32, 32}), rp::ones({32, 32})).compile();
  const std::string page = written("deep.html", {{"deep", program}});
  std::size_t equations = 0;
  const json data = data_of(page);
  for (const json& s : data["programs"][0]["steps"]) equations += s[operations].size() / 3;
  CHECK(equations >= 10000);
  CHECK(page.size() < 2000000);
  const std::vector<std::size_t> sums = stacked(data["programs"][0]);
  CHECK(*std::max_element(sums.begin(), sums.end()) == program.memory_analysis().peak_bytes);
}
