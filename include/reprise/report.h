// One page that shows what compiled programs hold in memory, step by step, and why.
//
//   auto step = rp::jit(rp::value_and_grad(loss)).lower(params, x).compile();
//   rp::write_report(step, "report.html");
//   rp::write_report({{"none", plain}, {"nothing_saveable", checkpointed}}, "report.html");
#pragma once

#include "reprise/memory_curve.h"

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

namespace detail {
// What compile() gives, of jit and of nnx::jit.
template <class C>
concept Inspectable = requires(const C& c) {
  { c.entry() } -> std::convertible_to<std::shared_ptr<const JitEntry>>;
};
}  // namespace detail

// A compiled function under the name that a report gives it.
class NamedCompiled {
 public:
  template <detail::Inspectable C>
  NamedCompiled(std::string name, const C& compiled)
      : name_(std::move(name)), entry_(compiled.entry()) {}

  const std::string& name() const { return name_; }
  const detail::JitEntry& entry() const { return *entry_; }

 private:
  std::string name_;
  std::shared_ptr<const detail::JitEntry> entry_;
};

namespace detail {
// The page as text, UTF-8.
std::string report_page(const std::vector<NamedCompiled>& programs,
                        const std::vector<CurveData>& curve = {});
void write_report(const std::vector<NamedCompiled>& programs, const std::string& path,
                  const std::vector<CurveData>& curve);
std::string program_name(const JitEntry&);  // of the traced function
}  // namespace detail

// Writes a web page that needs nothing but itself: memory over the steps of the planned programs,
// the values that live at each step, what the rules save and what the plan keeps. Several programs
// are laid over each other, the first is shown in full. The file is complete or not there: a
// RuntimeError when it cannot be written. No programs, or two of one name, are a TypeError.
void write_report(const std::vector<NamedCompiled>& programs, const std::string& path);
// The same with the curve of time against memory, on which the programs are points: how far a
// policy is from the best for its memory.
template <class F>
void write_report(const std::vector<NamedCompiled>& programs, const std::string& path,
                  const MemoryCurve<F>& curve) {
  detail::write_report(programs, path, {curve.points.begin(), curve.points.end()});
}
template <detail::Inspectable C>
void write_report(const C& compiled, const std::string& path) {
  write_report({NamedCompiled(detail::program_name(*compiled.entry()), compiled)}, path);
}

}  // namespace reprise
#pragma GCC visibility pop
