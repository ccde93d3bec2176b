// Random programs for property tests: a scalar function of a few arrays, made of all kinds of
// operations, with loops, branches, calls, mapped functions, named values and nested checkpoints. A
// seed decides everything; the same seed without checkpoints applies the same operations.
//
//   const auto [loss, args] = random_program::make(7);
//   const auto plain = random_program::make(7, {.checkpoints = false});
//   loss(args);                     // equals plain.loss(plain.args) bit for bit
//
// Values stay of order one and no operation is near a pole, so that results can be compared
// closely.
#pragma once

#include <reprise/reprise.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace random_program {

namespace rp = reprise;

// A policy as data, so that a test can decide for itself what it allows.
enum class PolicyKind {
  none,
  everything,
  nothing,
  dots,
  dots_no_batch,
  only_names,
  any_names_but,
  anything_except,
  offload_dots,
  save_and_offload,
  at_least,
  at_most,
  custom_sines,
  custom_answers,
  either,
  both,
  neither,
};
struct PolicyRecipe {
  PolicyKind kind = PolicyKind::none;
  std::vector<std::string> names = {}, offloaded = {};
  std::size_t bytes = 0;
  std::vector<PolicyRecipe> parts = {};  // of either and both; neither looks at the first only
};
PolicyRecipe random_policy(std::uint64_t seed);
rp::Policy make_policy(const PolicyRecipe&);

struct Options {
  rp::Dtype dtype = rp::float64;
  bool checkpoints = true;   // false: the same operations without checkpoint
  bool control_flow = true;  // scan, cond, switch, while, fori, and vmap of blocks and of these
  int operations = 3;        // in every block
  int depth = 2;             // how deep blocks nest
};
struct RandomProgram {
  std::function<rp::Array(rp::Arrays)> loss;
  rp::Arrays args;
};
RandomProgram make(std::uint64_t seed, const Options& options = {});

}  // namespace random_program
