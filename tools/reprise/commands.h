// What `reprise print`, `residuals`, `plan`, `curve`, `suggest` and `solve` do. Each writes its
// answer to `out`, as text or as JSON, and throws UsageError, InputError or an Error of the library.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::cli {

struct PrintOptions {
  std::string file;
  int width = 80;
  bool json = false;
};
void print_program(const PrintOptions&, std::ostream& out);

struct ResidualsOptions {
  std::string file;
  std::vector<std::string> policies;  // empty: none
  std::string wrt;
  bool json = false;
};
void list_residuals(const ResidualsOptions&, std::ostream& out);

struct PlanOptions {
  std::string file;
  std::vector<std::string> policies;  // empty: none
  std::string wrt;
  bool forward = false;  // plan the program itself, not its gradient
  bool steps = false;    // print what a run does, step by step
  std::string report;    // a web page to write; empty: none
  bool json = false;
};
void plan_memory(const PlanOptions&, std::ostream& out);

struct CurveOptions {
  std::string file;
  std::vector<std::string> policies;  // empty: none
  std::string wrt;
  std::string report;  // a web page to write; empty: none
  bool json = false;
};
void draw_curve(const CurveOptions&, std::ostream& out);

struct SuggestOptions {
  std::string file;
  std::string budget;  // "8GiB"
  std::string wrt;
  bool json = false;
};
void suggest(const SuggestOptions&, std::ostream& out);

struct SolveOptions {
  std::string file;
};
void solve_graphs(const SolveOptions&, std::ostream& out);

}  // namespace reprise::cli
