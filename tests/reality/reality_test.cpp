// The plan against the process: what malloc and mmap are asked for while a program runs is what the
// plan says.
#include "../../bench/workloads.h"
#include "random_program.h"
#include "reality/allocation_counter.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace rp = reprise;
using rp::Array;

namespace {

// for everything that is not an array: stacks of the library, small vectors
constexpr std::size_t slack = 256 << 10;

struct Figures {
  std::size_t planned = 0, taken = 0, resident = 0;
};

std::size_t status_bytes(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0)
      return std::stoul(line.substr(line.find_first_of("0123456789"))) << 10;
  }
  return 0;
}
void reset_high_water() { std::ofstream("/proc/self/clear_refs") << "5"; }

template <class F, class... A>
Figures run_once_with(const rp::JitOptions& options, const F& f, const A&... args) {
  const auto jitted = rp::jit(f, options);
  const auto compiled = jitted.lower(args...).compile();
  rp::release_free_memory();
  malloc_trim(0);  // pages that are free but still resident would hide what the run touches
  const std::size_t before = allocation_counter::live();
  reset_high_water();
  const std::size_t resident = status_bytes("VmRSS");
  allocation_counter::reset_peak();
  const std::size_t planned = compiled.memory_analysis().peak_bytes;
  static_cast<void>(jitted(args...));
  const std::size_t taken = allocation_counter::peak() - before;
  const std::size_t touched = status_bytes("VmHWM") - resident;
  return {planned, taken, touched};
}

template <class F, class... A>
Figures run_once(const F& f, const A&... args) {
  return run_once_with({}, f, args...);
}

// Threads of the pool and the code generator exist before anything is measured; a first product is
// measured like any other.
void warm_up() {
  static const bool done = [] {
    const Array x = rp::ones({512, 512});
    rp::jit([](Array v) { return rp::sum(v * v); })(x);
    return true;
  }();
  static_cast<void>(done);
}

struct Compare {
  template <class F, class L, class... A>
  void operator()(const std::string& workload, const std::string& mode, const F& f, const L&,
                  const A&... args) const {
    warm_up();
    const Figures x = run_once(f, args...);
    std::printf("%-10s %-14s planned %11zu  malloc + mmap %11zu  resident %11zu\n",
                workload.c_str(), mode.c_str(), x.planned, x.taken, x.resident);
    INFO(workload, " ", mode);
    CHECK(x.taken <= x.planned + slack);
    CHECK(x.taken + slack >= x.planned);  // the plan does not exaggerate either
    // Pages of the block that holds the process's small objects may be touched for the first time
    // here.
    CHECK(x.resident <= x.planned + 8 * slack);
  }
};

}  // namespace

TEST_CASE("workloads take the memory that was planned, to a quarter of a MiB") {
  const Compare compare;
  for (const char* name : bench::workload_names) CHECK(bench::visit_workload(name, compare));
}

TEST_CASE("a result costs at most 100 bytes beyond its elements") {
  constexpr std::int64_t results = 1000, width = 256;
  const auto split = rp::jit([](Array x) {
    rp::Arrays rows;
    for (std::int64_t i = 0; i < results; ++i) rows.push_back(x[i] + 1.f);
    return rows;
  });
  const Array x = rp::ones({results, width});
  split(x);
  const std::size_t before = allocation_counter::live();
  const rp::Arrays rows = split(x);
  const std::size_t list = rows.capacity() * sizeof(Array);
  CHECK((allocation_counter::live() - before - list) / results <= width * sizeof(float) + 100);
  CHECK(rows.back().to_vector<float>() == std::vector<float>(width, 2.f));
}

// The library's own memory is part of the plan: every way it goes, and what it takes and gives back
// unasked.
TEST_CASE("convolutions take the memory that was planned") {
  const auto last = rp::lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  struct Weights {
    Array first, second, grouped, last;
  };
  const auto loss = [last](Weights w, Array x) {
    const auto conv = [&](const Array& v, const Array& kernel, std::int64_t stride,
                          std::int64_t groups) {
      return rp::tanh(rp::lax::conv_general_dilated(v, kernel,
                                                    {.window_strides = {stride, stride},
                                                     .padding = {{1, 1}, {1, 1}},
                                                     .dimension_numbers = last,
                                                     .feature_group_count = groups}));
    };
    x = conv(x, w.first, 1, 1);
    x = conv(x, w.second, 2, 1);
    x = conv(x, w.grouped, 1, 8);
    return rp::mean(rp::square(conv(x, w.last, 1, 1)));
  };
  const auto values = [](int seed, const rp::Shape& shape, rp::Dtype dtype) {
    return (0.1f * rp::random::normal(rp::random::key(seed), shape)).astype(dtype);
  };
  const Compare compare;
  for (const rp::Dtype dtype : {rp::float32, rp::bfloat16, rp::float16, rp::float64}) {
    const Weights w{values(1, {3, 3, 3, 32}, dtype), values(2, {3, 3, 32, 64}, dtype),
                    values(3, {3, 3, 8, 64}, dtype), values(4, {3, 3, 64, 3}, dtype)};
    const Array x = values(5, {4, 64, 64, 3}, dtype);
    const std::string name(rp::short_name(dtype));
    compare("conv", name, rp::value_and_grad(loss), loss, w, x);
    compare("conv", name + " remat", rp::value_and_grad(rp::checkpoint(loss)), loss, w, x);
  }
}

TEST_CASE("large products take the memory that was planned, however they are computed") {
  const auto values = [](int seed, const rp::Shape& shape) {
    return rp::random::normal(rp::random::key(seed), shape);
  };
  const auto loss = [](Array w, Array x) { return rp::sum(rp::tanh(rp::matmul(x, w))); };
  const Compare compare;
  for (const std::int64_t rows : {300, 512, 1030, 2048}) {
    for (const std::int64_t columns : {384, 512, 1024, 1536}) {
      const std::string name = std::to_string(rows) + " x " + std::to_string(columns);
      compare("product", name, rp::value_and_grad<0, 1>(loss), loss, values(1, {400, columns}),
              values(2, {rows, 400}));
      compare("product", name + " long", rp::value_and_grad<0, 1>(loss), loss,
              values(1, {1024, columns}), values(2, {rows, 1024}));
    }
  }
}

// Operands of several dtypes, and sums that are not the operands' dtype.
TEST_CASE("products of mixed dtypes take the memory that was planned") {
  const auto values = [](int seed, const rp::Shape& shape, rp::Dtype d) {
    return (4.f * rp::random::normal(rp::random::key(seed), shape)).astype(d);
  };
  const std::vector<rp::Dtype> dtypes = {rp::float32, rp::bfloat16, rp::float16, rp::float64,
                                         rp::int8,    rp::uint8,    rp::int32,   rp::bool_};
  const Compare compare;
  for (const rp::Dtype a : dtypes) {
    for (const rp::Dtype b : dtypes) {
      for (const std::optional<rp::Dtype> sum :
           {std::optional<rp::Dtype>(), std::optional(rp::float32), std::optional(rp::int32)}) {
        const auto f = [sum](Array x, Array y) {
          return rp::lax::dot_general(x, y, {{1}, {0}, {}, {}}, sum);
        };
        const auto x = values(1, {512, 384}, a), y = values(2, {384, 640}, b);
        try {
          f(x[rp::slice(0, 1)], y);
        } catch (const rp::TypeError&) {
          continue;  // a sum narrower than the operands
        }
        const std::string name =
            std::string(rp::short_name(a)) + " " + std::string(rp::short_name(b));
        compare("mixed", name + (sum ? " " + std::string(rp::short_name(*sum)) : ""), f, f, x, y);
      }
    }
  }
}

// What has no code of its own runs in the evaluator, inside the plan.
TEST_CASE("evaluated steps take the memory that was planned") {
  const Array x = rp::random::normal(rp::random::key(1), {1024, 1024});
  const Compare compare;
  const auto run = [&](const char* name, const auto& f, const auto&... args) {
    compare("evaluated", name, f, f, args...);
  };
  run(
      "top_k", [](Array v) { return rp::lax::top_k(v, 512); }, x);
  run(
      "top_k of a long row", [](Array v) { return rp::lax::top_k(v.reshape({1 << 20}), 1 << 19); },
      x);
  run(
      "pad that cuts",
      [](Array v) {
        return rp::lax::pad(v, 0.f, {{-3, 40, 0}, {5, -7, 1}});
      },
      x);
  run(
      "large windows",
      [](Array v) {
        return rp::lax::reduce_window_max(v, {{9, 9}, {3, 3}, {{0, 0}, {0, 0}}});
      },
      x);
  run(
      "bits of 64",
      [](Array k) {
        return rp::random::bits(k, {1024, 1024}, rp::uint64);
      },
      rp::random::key(3));
  run(
      "split keys", [](Array k) { return rp::random::key_data(rp::random::split(k, 200000)); },
      rp::random::key(3));
  run(
      "bitcast", [](Array v) { return rp::lax::bitcast_convert_type(v, rp::uint8); }, x);
  for (const rp::Dtype d : {rp::float32, rp::bfloat16}) {
    const auto pool = rp::grad([](Array v) {
      return rp::sum(rp::lax::reduce_window_max(v, {{9, 9}, {3, 3}, {{0, 0}, {0, 0}}}));
    });
    run("large windows, gradient", pool, x.astype(d));
  }
  const auto conv = [](Array v, Array k) {
    return rp::lax::conv_general_dilated(v, k,
                                         {.window_strides = {1, 1}, .padding = {{0, 0}, {0, 0}}});
  };
  for (const rp::Dtype d : {rp::float64, rp::int32}) {
    run("large kernels", conv,
        (8.f * rp::random::normal(rp::random::key(2), {2, 8, 96, 96})).astype(d),
        (8.f * rp::random::normal(rp::random::key(3), {8, 8, 12, 12})).astype(d));
  }
}

TEST_CASE("random programs take the memory that was planned") {
  warm_up();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto program = random_program::make(seed, {.dtype = rp::float32});
    const Figures x = run_once(rp::grad(program.loss), program.args);
    INFO("seed ", seed, " planned ", x.planned, " taken ", x.taken);
    CHECK(x.taken <= x.planned + slack);
  }
}

TEST_CASE("offloaded values take memory where they stay in it, none on disk") {
  warm_up();
  constexpr std::int64_t layers = 8, rows = 1024, width = 512;
  constexpr std::size_t value = rows * width * sizeof(float);
  const Array w = rp::full({width, width}, 0.001f), x = rp::ones({rows, width});
  const auto net = [](const rp::Policy& policy) {
    const auto layer = [](Array W, Array v) {
      v = rp::checkpoint_name(v, "input");
      return rp::tanh(rp::matmul(rp::tanh(rp::matmul(v, W)), W));
    };
    return rp::grad([layer, policy](Array W, Array v) {
      for (int i = 0; i < layers; ++i) v = rp::checkpoint(layer, {.policy = policy})(W, v);
      return rp::sum(v);
    });
  };
  const auto offload = rp::checkpoint_policies::save_and_offload_only_these_names(
      {.names_which_can_be_saved = {},
       .names_which_can_be_offloaded = {"input"},
       .offload_src = "device",
       .offload_dst = "pinned_host"});
  // The smallest first: what one run leaves resident serves the next.
  const Figures on_disk = run_once_with({.spill_directory = std::filesystem::temp_directory_path()},
                                        net(offload), w, x);
  const Figures saved =
      run_once(net(rp::checkpoint_policies::save_only_these_names("input")), w, x);
  const Figures in_memory = run_once(net(offload), w, x);
  for (const Figures& f : {on_disk, saved, in_memory}) {
    std::printf("offload    planned %11zu  malloc + mmap %11zu  resident %11zu\n", f.planned,
                f.taken, f.resident);
    CHECK(f.taken <= f.planned + slack);
    CHECK(f.taken + slack >= f.planned);
    CHECK(f.resident <= f.planned + 8 * slack);
  }
  CHECK(on_disk.resident + 4 * value <= saved.resident);
  CHECK(on_disk.resident + 4 * value <= in_memory.resident);
}

TEST_CASE("a run that gets no memory is an error, and the next one works") {
  const Array x = rp::ones({1024, 1024});
  const auto f = rp::jit([](Array v) { return rp::sin(rp::matmul(v, v)); });
  const Array expected = f(x);
  const auto fails_without_memory = [&] {
    rp::release_free_memory();
    allocation_counter::refuse_from(1 << 20);
    std::string message;
    try {
      f(x);
    } catch (const rp::RuntimeError& e) {
      message = e.what();
    }
    allocation_counter::refuse_from(0);
    CHECK(message.find("memory") != std::string::npos);
    CHECK(message.find("4194304") != std::string::npos);
  };
  fails_without_memory();  // the first exception of a process allocates for itself
  const std::size_t before = allocation_counter::live();
  fails_without_memory();
  CHECK(allocation_counter::live() <= before);
  CHECK(rp::all(rp::equal(f(x), expected)).item<bool>());
}
