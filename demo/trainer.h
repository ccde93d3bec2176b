// Training under one checkpoint policy, and what it costs: memory planned and measured, operations,
// time. What is learned does not depend on the policy.
#pragma once

#include "corpus.h"
#include "model.h"
#include <reprise/report.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace demo {

struct NamedPolicy {
  std::string name;
  std::optional<rp::Policy> policy;  // none: no checkpoint
  bool offloads = false;             // to a file
};
// Ordered by the memory they take, most first.
const std::vector<NamedPolicy>& all_policies();

struct TrainingOptions {
  Sizes sizes;
  std::int64_t steps = 1;  // over which the learning rate rises and falls
  std::int64_t seed = 0;
};

class Trainer {
 public:
  // Compiles the training step: memory and operations are known from here on.
  Trainer(const NamedPolicy& policy, const Corpus& corpus, const TrainingOptions& options);

  void step();

  const std::string& name() const { return name_; }
  std::size_t planned_bytes() const { return memory_.peak_bytes; }  // beyond the arguments
  std::size_t measured_bytes() const { return measured_bytes_; }    // the most of all steps so far
  double flops() const { return cost_.flops; }                      // of one step
  double seconds_per_step() const;                                  // the median so far
  double tokens_per_second() const;
  const std::vector<float>& losses() const { return losses_; }  // of each step, before its update

  const rp::NamedCompiled& compiled() const { return *compiled_; }  // for a report
  const Transformer& model() const { return model_; }
  const rp::Dict& params() const { return params_; }

 private:
  // (params, optimiser state, text) -> (loss, params, state)
  using Step = std::function<std::tuple<Array, rp::Dict, rp::Dict>(rp::Dict, rp::Dict, Array)>;

  const Corpus& corpus_;
  std::string name_;
  Transformer model_;
  std::mt19937 random_;
  Step step_;
  rp::Dict params_, state_;
  std::optional<rp::NamedCompiled> compiled_;
  rp::MemoryAnalysis memory_;
  rp::CostAnalysis cost_;
  std::size_t measured_bytes_ = 0;
  std::vector<float> losses_;
  std::vector<double> seconds_;
};

}  // namespace demo
