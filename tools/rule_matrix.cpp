// Which primitive has which rules, as a Markdown page.
//
//   rule_matrix > docs/primitives.md       writes the page
//   rule_matrix docs/primitives.md         fails unless the page is up to date
#include "api/primitives.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <vector>

namespace reprise {
namespace {

const char* title_of(Kind kind) {
  switch (kind) {
    case Kind::elementwise: return "Elementwise";
    case Kind::reduce: return "Reductions";
    case Kind::shape: return "Shapes";
    case Kind::dot: return "Products";
    case Kind::conv: return "Convolutions";
    case Kind::index: return "Indexing, sorting and random numbers";
    case Kind::constant: return "Constants";
    case Kind::call: return "Calls";
    case Kind::name: return "Names";
    case Kind::effect: return "Effects";
  }
  return "";
}

void print_row(std::ostream& out, const Primitive& p) {
  const auto cell = [&](bool has_rule) { out << (has_rule ? " yes |" : " |"); };
  out << "| `" << p.name << "` |";
  cell(p.type);
  cell(p.eval);
  out << (p.tangent ? " tangent |" : p.jvp ? " jvp |" : " |");
  cell(p.linearize);
  cell(p.partial_eval);
  cell(p.transpose);
  cell(p.batch);
  cell(p.dce);
  cell(p.printed_params);
  out << "\n";
}

std::string page() {
  std::ostringstream out;
  out << "# Primitives and their rules\n\n"
         "Every program consists of these primitives; a cell says which rule a primitive defines "
         "itself, and using a rule that neither it nor a default provides is a `RuleError` that "
         "names both. This page is printed by `tools/rule_matrix.cpp`, and a test fails when it is "
         "out of date.\n";
  for (int k = 0; k <= static_cast<int>(Kind::effect); ++k) {
    const auto kind = static_cast<Kind>(k);
    out << "\n## " << title_of(kind) << "\n\n"
        << "| primitive | type | eval | derivative | linearize | partial_eval | transpose | "
           "batch | dce | own printing |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for (const Primitive* p : all_primitives()) {
      if (p->kind == kind) print_row(out, *p);
    }
  }
  return out.str();
}

int check(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text == page()) return 0;
  std::cerr << path << " is out of date: write it with rule_matrix > " << path << "\n";
  return 1;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc > 1) return reprise::check(argv[1]);
  std::cout << reprise::page();
  return 0;
}
