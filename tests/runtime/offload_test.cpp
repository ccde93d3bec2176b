// Offloaded values in compiled programs: the same numbers, and less memory when they go to a file.
#include "program/trace.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

namespace {

rp::Policy offload(std::vector<std::string> names) {
  return rp::checkpoint_policies::save_and_offload_only_these_names(
      {.names_which_can_be_saved = {},
       .names_which_can_be_offloaded = names,
       .offload_src = "device",
       .offload_dst = "pinned_host"});
}

Array ramp(rp::Shape shape, double from, double to) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i)
    v.push_back(static_cast<float>(from + (to - from) * static_cast<double>((i * 7919) % n) /
                                              static_cast<double>(n)));
  return rp::array(v).reshape(shape);
}

Array layer(Array W, Array v) {
  return rp::tanh(rp::checkpoint_name(rp::matmul(rp::sin(v), W), "h"));
}

// The same net with its layers in one checkpoint, in one each, in a loop.
using Net = std::function<Array(Array, Array)>;
Net whole(const rp::Policy& policy, int layers) {
  auto run = [layers](Array W, Array v) {
    for (int i = 0; i < layers; ++i) v = layer(W, v);
    return v;
  };
  return [=](Array W, Array v) { return rp::sum(rp::checkpoint(run, {.policy = policy})(W, v)); };
}
Net blocks(const rp::Policy& policy, int layers) {
  return [=](Array W, Array v) {
    for (int i = 0; i < layers; ++i) v = rp::checkpoint(layer, {.policy = policy})(W, v);
    return rp::sum(v);
  };
}
Net looped(const rp::Policy& policy, int layers) {
  return [=](Array W, Array v) {
    auto body = rp::checkpoint(
        [W](Array c, rp::None) {
          return std::pair{layer(W, c), rp::none};
        },
        {.policy = policy});
    return rp::sum(rp::scan(body, v, rp::none, {.length = layers}).first);
  };
}
constexpr Net (*nets[])(const rp::Policy&, int) = {whole, blocks, looped};

std::string temporary_directory() { return std::filesystem::temp_directory_path(); }

std::vector<std::vector<float>> numbers(const std::pair<Array, std::tuple<Array, Array>>& r) {
  return {r.first.to_vector<float>(), std::get<0>(r.second).to_vector<float>(),
          std::get<1>(r.second).to_vector<float>()};
}

}  // namespace

TEST_CASE("gradients with offload equal those without, bit for bit") {
  const Array w = ramp({48, 48}, -0.2, 0.2), x = ramp({33, 48}, -1, 1);
  for (const auto net : nets) {
    const auto saved = numbers(rp::jit(rp::value_and_grad<0, 1>(
        net(rp::checkpoint_policies::save_only_these_names("h"), 5)))(w, x));
    for (const std::string& directory : {std::string(), temporary_directory()}) {
      const auto step =
          rp::jit(rp::value_and_grad<0, 1>(net(offload({"h"}), 5)), {.spill_directory = directory});
      for (int repeat = 0; repeat < 3; ++repeat) CHECK(numbers(step(w, x)) == saved);
      const auto memory = step.lower(w, x).compile().memory_analysis();
      CHECK(memory.host_temp_bytes == 5 * 33 * 48 * 4);
      CHECK(memory.host_on_disk == !directory.empty());
    }
  }
}

TEST_CASE("only a file lowers the peak, and a run takes what is planned") {
  const Array w = ramp({128, 128}, -0.1, 0.1), x = ramp({512, 128}, -1, 1);
  constexpr std::size_t value = 512 * 128 * 4;
  for (const auto net : nets) {
    const auto saved =
        rp::jit(rp::grad(net(rp::checkpoint_policies::save_only_these_names("h"), 8)));
    const auto in_memory = rp::jit(rp::grad(net(offload({"h"}), 8)));
    const auto on_disk =
        rp::jit(rp::grad(net(offload({"h"}), 8)), {.spill_directory = temporary_directory()});
    const auto a = saved.lower(w, x).compile().memory_analysis(),
               b = in_memory.lower(w, x).compile().memory_analysis(),
               c = on_disk.lower(w, x).compile().memory_analysis();
    CHECK(a.host_temp_bytes == 0);
    CHECK(b.host_temp_bytes == 8 * value);
    CHECK(c.host_temp_bytes == 8 * value);
    CHECK(b.peak_bytes - b.host_temp_bytes <= a.peak_bytes);
    CHECK(c.peak_bytes + 6 * value <= b.peak_bytes);
    if (net != static_cast<Net (*)(const rp::Policy&, int)>(blocks))
      CHECK(c.peak_bytes + 2 * value <= a.peak_bytes);
    for (const auto& [step, planned] :
         {std::pair{in_memory, b.peak_bytes}, std::pair{on_disk, c.peak_bytes}}) {
      step(w, x);
      rp::reset_peak_live_bytes();
      const std::size_t before = rp::live_bytes();
      const auto out = step(w, x);
      CHECK(rp::peak_live_bytes() - before <= planned + 4096);
      CHECK(rp::peak_live_bytes() - before + 4096 >= planned);
    }
  }
}

TEST_CASE("values that the whole net needs at once are read back when they are needed") {
  const Array w = ramp({128, 128}, -0.1, 0.1), x = ramp({512, 128}, -1, 1);
  const auto peak = [&](int layers) {
    return rp::jit(rp::grad(whole(offload({"h"}), layers)),
                   {.spill_directory = temporary_directory()})
        .lower(w, x)
        .compile()
        .memory_analysis()
        .peak_bytes;
  };
  CHECK(peak(24) == peak(6));
}

TEST_CASE("the planned program shows transfers and where values lie") {
  const Array w = ramp({64, 64}, -0.1, 0.1), x = ramp({64, 64}, -1, 1);
  const auto compiled = rp::jit(rp::grad(blocks(offload({"h"}), 3))).lower(w, x).compile();
  const std::string text = compiled.as_text();
  for (const char* part : {"begin_write v", "end_write v", "begin_read v", "end_read v", "@ host+0",
                           ", host 49152 in memory"}) {
    INFO(std::string(part));
    CHECK(text.find(part) != std::string::npos);
  }
  std::ostringstream printed;
  printed << compiled.memory_analysis();
  CHECK(printed.str().find(", offloaded 49152 in memory") != std::string::npos);
}

TEST_CASE("the environment names a directory, the option another") {
  const Array w = ramp({16, 16}, -0.1, 0.1), x = ramp({16, 16}, -1, 1);
  const auto analysis = [&](const rp::JitOptions& options) {
    return rp::jit(rp::grad(blocks(offload({"h"}), 2)), options).lower(w, x).compile();
  };
  setenv("REPRISE_SPILL_DIR", "/no/such/place", 1);
  const auto by_environment = analysis({}),
             by_option = analysis({.spill_directory = temporary_directory()});
  unsetenv("REPRISE_SPILL_DIR");
  CHECK(by_environment.memory_analysis().host_on_disk);
  CHECK_THROWS_WITH_AS(by_environment(w, x), doctest::Contains("'/no/such/place'"),
                       rp::RuntimeError);
  CHECK(by_option(w, x).shape() == rp::Shape{16, 16});
  CHECK(!analysis({}).memory_analysis().host_on_disk);
}

TEST_CASE("a loop whose body offloads and reads back keeps that on the host too") {
  const Array w = ramp({32, 32}, -0.1, 0.1), xs = ramp({4, 16, 32}, -1, 1);
  for (const std::string& directory : {std::string(), temporary_directory()}) {
    const auto sum_of_gradients = [](const rp::Policy& policy) {
      return [policy](Array W, Array batches) {
        auto body = [policy, W](Array sum, Array x) {
          return std::pair{sum + rp::grad(whole(policy, 3))(W, x), rp::none};
        };
        return rp::scan(body, rp::zeros({32, 32}), batches).first;
      };
    };
    const auto step = rp::jit(sum_of_gradients(offload({"h"})), {.spill_directory = directory});
    const auto expected =
        rp::jit(sum_of_gradients(rp::checkpoint_policies::save_only_these_names("h")))(w, xs);
    CHECK(step(w, xs).to_vector<float>() == expected.to_vector<float>());
    CHECK(step.lower(w, xs).compile().memory_analysis().host_temp_bytes == 3 * 16 * 32 * 4);
  }
}

TEST_CASE("loops in loops and branches carry offloaded values") {
  const Array w = ramp({32, 32}, -0.1, 0.1), x = ramp({16, 32}, -1, 1);
  const auto nested = [](const rp::Policy& policy) {
    return [policy](Array W, Array v) {
      auto inner = rp::checkpoint(
          [W](Array c, rp::None) {
            return std::pair{layer(W, c), rp::none};
          },
          {.policy = policy});
      auto outer = [inner](Array c, rp::None) {
        return std::pair{rp::scan(inner, c, rp::none, {.length = 3}).first, rp::none};
      };
      return rp::sum(rp::scan(outer, v, rp::none, {.length = 2}).first);
    };
  };
  const auto branches = [](const rp::Policy& policy) {
    return [policy](Array W, Array v) {
      const auto f = rp::checkpoint(layer, {.policy = policy});
      v = rp::cond(
          rp::sum(v) > 0.f, [&](Array c) { return f(W, f(W, c)); }, [](Array c) { return c * 2.f; },
          v);
      return rp::sum(v) + rp::sum(rp::cond(
                              rp::sum(v) > 1e9f, [&](Array c) { return f(W, c); },
                              [](Array c) { return c; }, v));
    };
  };
  const auto same = [&](const auto& make) {
    for (const std::string& directory : {std::string(), temporary_directory()}) {
      const auto expected = numbers(rp::jit(rp::value_and_grad<0, 1>(
          make(rp::checkpoint_policies::save_only_these_names("h"))))(w, x));
      CHECK(numbers(rp::jit(rp::value_and_grad<0, 1>(make(offload({"h"}))),
                            {.spill_directory = directory})(w, x)) == expected);
    }
  };
  same(nested);
  same(branches);
}

TEST_CASE("an offloaded value that is returned stays in memory") {
  const Array x = ramp({64, 64}, -1, 1);
  const auto program = rp::fwd_bwd(
      rp::checkpoint([](Array v) { return rp::sin(rp::checkpoint_name(rp::sin(v), "h")); },
                     {.policy = offload({"h"})}),
      x);
  CHECK(program.forward.str().find("<host>") != std::string::npos);
  const Arrays out = rp::compile(*program.forward.program())->run({x});
  bool any = false;
  for (const Array& y : out) any = any || y.type().memory_space == rp::MemorySpace::host;
  CHECK(any);
}

TEST_CASE("offloading does not change what is saved, nor recomputation") {
  const Array w = ramp({16, 16}, -0.1, 0.1), x = ramp({16, 16}, -1, 1);
  std::ostringstream lines;
  for (const auto& r : rp::saved_residuals(whole(offload({"h"}), 2), RP_ARGS(w, x)))
    lines << r << "\n";
  CHECK(lines.str().find("f32<host>[16,16] output of device_put from ") != std::string::npos);
  for (const auto net : nets) {
    const auto check = rp::check_recompute(net(offload({"h"}), 3), w, x);
    CHECK_MESSAGE(check.ok, check.first_difference);
    CHECK(check.compared > 0);
  }
}

TEST_CASE("threads run one executable at once, each with a spill of its own") {
  const Array w = ramp({24, 24}, -0.2, 0.2);
  for (const std::string& directory : {std::string(), temporary_directory()}) {
    for (const auto net : nets) {
      const auto step = rp::jit(rp::grad(net(offload({"h"}), 3)), {.spill_directory = directory});
      std::vector<Array> inputs;
      std::vector<std::vector<float>> expected;
      for (int t = 0; t < 8; ++t) {
        inputs.push_back(ramp({8, 24}, -1, 0.2 * t));
        expected.push_back(step(w, inputs.back()).to_vector<float>());
      }
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < inputs.size(); ++t) {
        threads.emplace_back([&, t] {
          for (int i = 0; i < 40; ++i)
            wrong += step(w, inputs[t]).to_vector<float>() != expected[t];
        });
      }
      for (std::thread& t : threads) t.join();
      CHECK(wrong == 0);
    }
  }
}
