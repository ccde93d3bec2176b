// `reprise plan` tells the memory that the compiled gradient has in C++.
#include "reprise/reprise.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

using namespace reprise;

namespace {

const std::string folder = REPRISE_TEST_PROGRAMS;

std::string output_of(const std::string& arguments) {
  const std::string command = std::string(REPRISE_TOOL) + " " + arguments;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;) {
    text.append(part.data(), n);
  }
  return text;
}

nlohmann::json plan_of(const std::string& arguments) {
  return nlohmann::json::parse(output_of("plan --json " + arguments))["plans"][0];
}

Jaxpr program_in(const std::string& file) {
  std::ifstream in(folder + "/" + file);
  REQUIRE(in);
  return parse_jaxpr(std::string(std::istreambuf_iterator<char>(in), {}));
}

template <class F>
void check_plan(const nlohmann::json& plan, const Compiled<F>& compiled) {
  const MemoryAnalysis memory = compiled.memory_analysis();
  CHECK(plan["argument_bytes"] == memory.argument_bytes);
  CHECK(plan["output_bytes"] == memory.output_bytes);
  CHECK(plan["temp_bytes"] == memory.temp_bytes);
  CHECK(plan["peak_bytes"] == memory.peak_bytes);
  CHECK(plan["flops"] == compiled.cost_analysis().flops);
}

}  // namespace

TEST_CASE("the plan of a loss is that of value_and_grad") {
  const Jaxpr program = program_in("loss.jaxpr");
  auto loss = [&](Array a, Array b, Array c) { return program.eval({a, b, c})[0]; };
  const Array a = ones({64, 32}), b = ones({32, 16}), c = ones({128, 64});
  check_plan(plan_of(folder + "/loss.jaxpr"),
             jit(value_and_grad<0, 1, 2>(loss)).lower(a, b, c).compile());
  check_plan(plan_of(folder + "/loss.jaxpr --wrt b"),
             jit(value_and_grad<1>(loss)).lower(a, b, c).compile());
}

TEST_CASE("a policy checkpoints a program that has no checkpoints as a whole") {
  const Jaxpr program = program_in("loss.jaxpr");
  auto loss = [&](Array a, Array b, Array c) { return program.eval({a, b, c})[0]; };
  const auto kept = checkpoint(loss, {.policy = checkpoint_policies::dots_saveable});
  const Array a = ones({64, 32}), b = ones({32, 16}), c = ones({128, 64});
  check_plan(plan_of(folder + "/loss.jaxpr --policy dots_saveable"),
             jit(value_and_grad<0, 1, 2>(kept)).lower(a, b, c).compile());
}

TEST_CASE("the plan of a program with several outputs is that of vjp") {
  const Jaxpr program = program_in("layers.jaxpr");
  auto f = [&](Array a, Array b) {
    const Arrays out = program.eval({a, b});
    return std::tuple(out[0], out[1]);
  };
  auto step = [&](Array x, Array y, Array ct0, Array ct1) {
    const auto [outputs, pull] = vjp(f, x, y);
    return std::tuple(outputs, pull(std::tuple(ct0, ct1)));
  };
  const Array x = ones({16, 8}), y = ones({8, 4});
  check_plan(plan_of(folder + "/layers.jaxpr"),
             jit(step).lower(x, y, ones({16, 4}), ones({16})).compile());
}

TEST_CASE("forward plans the program as it is") {
  const Jaxpr program = program_in("blocks.jaxpr");
  auto f = [&](const Arrays& args) { return program.eval(args); };
  Arrays args;
  for (const Type& t : program.in_types()) args.push_back(ones(t.shape));
  check_plan(plan_of(folder + "/blocks.jaxpr --forward"), jit(f).lower(args).compile());
}
