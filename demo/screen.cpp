#include "screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace demo {

namespace {

// Lines fit into the 80 columns of a small terminal.
constexpr std::size_t name_width = 33;

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::size_t terminal_columns() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string name_of(const Trainer& trainer, std::size_t width) {
  std::string name = trainer.name();
  name.resize(width, ' ');
  return name;
}

std::string facts(const Trainer& trainer, std::int64_t steps) {
  const std::string done = std::to_string(trainer.losses().size()) + "/" + std::to_string(steps);
  std::ostringstream out;
  out << std::fixed << std::setw(10) << done << "  loss " << std::setprecision(4)
      << trainer.losses().back() << std::setprecision(0) << std::setw(7)
      << trainer.tokens_per_second() << " tokens/s" << std::setprecision(1) << std::setw(6)
      << megabytes(trainer.measured_bytes()) << " MB";
  return out.str();
}

std::string bar(double part, std::size_t width) {
  const auto full = static_cast<std::size_t>(part * static_cast<double>(width));
  std::string text;
  for (std::size_t i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

}  // namespace

bool is_terminal() {
  static const bool result = isatty(STDOUT_FILENO) == 1;
  return result;
}

void Progress::show(const Trainer& trainer) {
  constexpr std::chrono::milliseconds pause(100);
  const auto now = std::chrono::steady_clock::now();
  if (!is_terminal() || now - drawn_ < pause) return;
  drawn_ = now;
  // The bar takes what is left; on a narrow terminal the name gives way.
  const std::string line = facts(trainer, steps_);
  const std::size_t columns = terminal_columns();
  const std::size_t left = columns > line.size() + 1 ? columns - line.size() - 1 : 0;
  const std::size_t width = std::clamp<std::size_t>(left - std::min(left, name_width), 10, 30);
  if (left < width + 10) return;
  const double part = static_cast<double>(trainer.losses().size()) / static_cast<double>(steps_);
  std::cout << "\r" << name_of(trainer, std::min(name_width, left - width)) << bar(part, width)
            << line << "\x1b[K" << std::flush;
}

void Progress::finish(const Trainer& trainer) {
  if (trainer.losses().empty()) return;
  if (is_terminal()) std::cout << "\r\x1b[K";
  std::cout << name_of(trainer, name_width) << facts(trainer, steps_) << std::endl;
}

std::string table(const std::vector<Trainer>& trainers, double flops_without) {
  std::ostringstream out;
  out << "Peak of a step beyond its arguments, operations recomputed, median time, loss:\n\n"
      << "policy                             planned  measured  recomputed   step    loss\n"
      << "                                        MB        MB   GFLOP   %     ms    nats\n"
      << std::fixed;
  for (const Trainer& t : trainers) {
    if (t.losses().empty()) continue;
    const double again = t.flops() - flops_without;
    out << name_of(t, name_width) << std::setprecision(2) << std::setw(9)
        << megabytes(t.planned_bytes()) << std::setw(10) << megabytes(t.measured_bytes())
        << std::setprecision(3) << std::setw(8) << again / 1e9 << std::setprecision(0)
        << std::setw(4) << 100 * again / flops_without << std::setprecision(1) << std::setw(7)
        << 1e3 * t.seconds_per_step() << std::setprecision(4) << std::setw(8) << t.losses().back()
        << "\n";
  }
  return out.str();
}

}  // namespace demo
