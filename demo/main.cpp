// The demo that ./run plays: a small transformer learns a text under each checkpoint policy. The
// losses are the same; the memory, the work and the time are not.
#include "sampler.h"
#include "screen.h"
#include "trainer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

namespace {

using demo::NamedPolicy;
using demo::Trainer;

struct Options {
  demo::Sizes sizes;
  std::vector<std::string> policies;  // none named: all
  std::int64_t steps = 120, more_steps = 1380, sample = 600, seed = 0;
  std::string data = REPRISE_DEMO_DATA, report = "report.html";
  bool quick = false;
};

volatile std::sig_atomic_t interrupted = 0;

void add_options(CLI::App& app, Options& o) {
  std::vector<std::string> names;
  for (const NamedPolicy& p : demo::all_policies()) names.push_back(p.name);
  app.option_defaults()->always_capture_default();
  app.add_option("--steps", o.steps, "Training steps under each policy")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--more-steps", o.more_steps, "Further steps of the last policy, for the sample")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--policy", o.policies, "Train under this policy only; may be repeated")
      ->check(CLI::IsMember(names));
  app.add_option("--layers", o.sizes.layers, "Blocks of the transformer")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--width", o.sizes.width, "Features of a character, a multiple of 4")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--sample", o.sample, "Characters of the text sample")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--seed", o.seed, "Of the parameters, the pieces of text and the sample");
  app.add_option("--data", o.data, "The text to learn")->check(CLI::ExistingFile);
  app.add_option("--report", o.report, "Where the report goes; '' for none");
  app.add_flag("--quick", o.quick, "A tiny model and few steps, unless other options say so");
}

// Small enough for a test; what the user asked for stays.
void make_quick(const CLI::App& app, Options& o) {
  const auto set = [&app](const char* name, std::int64_t& value, std::int64_t quick) {
    if (app.count(name) == 0) value = quick;
  };
  set("--steps", o.steps, 4);
  set("--more-steps", o.more_steps, 4);
  set("--layers", o.sizes.layers, 3);
  set("--width", o.sizes.width, 32);
  set("--sample", o.sample, 80);
  o.sizes.batch = 4;
}

// Up to so many steps in all; false if the user wants to stop.
bool train(Trainer& trainer, std::int64_t steps) {
  demo::Progress progress(steps);
  while (!interrupted && static_cast<std::int64_t>(trainer.losses().size()) < steps) {
    trainer.step();
    progress.show(trainer);
  }
  progress.finish(trainer);
  return !interrupted;
}

std::vector<Trainer> train_all(const Options& o, const demo::Corpus& corpus,
                               const demo::TrainingOptions& training) {
  std::vector<Trainer> trainers;
  for (const NamedPolicy& policy : demo::all_policies()) {
    if (!o.policies.empty() && std::ranges::count(o.policies, policy.name) == 0) continue;
    trainers.emplace_back(policy, corpus, training);
    if (!train(trainers.back(), o.steps)) break;
  }
  return trainers;
}

void show_sample(const Trainer& trainer, const demo::Corpus& corpus, const Options& o) {
  std::cout << "\nWhat " << trainer.name() << " writes after " << trainer.losses().size()
            << " steps:\n\n";
  const auto show = [](char c) {
    std::cout << c << std::flush;
    return interrupted == 0;
  };
  demo::write_text(trainer.model(), trainer.params(), corpus, o.sample, o.seed, show);
  std::cout << "\n";
}

void write_report(const std::vector<Trainer>& trainers, const std::string& path) {
  std::vector<demo::rp::NamedCompiled> programs;
  for (const Trainer& trainer : trainers) programs.push_back(trainer.compiled());
  demo::rp::write_report(programs, path);
  std::cout << "\n" << path << " shows the memory of a step under each policy, value by value.\n";
}

// 0, or 130 when the user interrupts: what is known by then is shown.
int play(Options o) {
  constexpr int stopped = 130;
  const demo::Corpus corpus(o.data);
  o.sizes.vocabulary = corpus.vocabulary();
  const demo::TrainingOptions training{o.sizes, o.steps + o.more_steps, o.seed};
  std::cout << "A transformer of " << o.sizes.layers << " blocks of width " << o.sizes.width
            << " learns " << corpus.size() << " characters of text under\neach checkpoint policy, "
            << o.sizes.batch << " x " << o.sizes.length << " in a step. Ctrl-C ends it.\n\n";

  std::vector<Trainer> trainers = train_all(o, corpus, training);
  const bool has_plain = trainers.front().name() == "none";
  const double flops_without =
      has_plain ? trainers.front().flops()
                : Trainer(demo::all_policies().front(), corpus, training).flops();
  std::cout << "\n" << demo::table(trainers, flops_without) << std::endl;
  if (interrupted) return stopped;

  Trainer& last = trainers.back();
  if (o.more_steps > 0 && !train(last, o.steps + o.more_steps)) return stopped;
  if (o.sample > 0) show_sample(last, corpus, o);
  if (interrupted) return stopped;
  if (!o.report.empty()) write_report(trainers, o.report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a small transformer under each checkpoint policy and compares what it takes.",
      "demo");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (options.quick) make_quick(app, options);

  std::signal(SIGINT, [](int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);  // the second time at once
  });
  try {
    return play(options);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
