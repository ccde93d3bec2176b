// checkpoint and the tables that show what it saves.
#include "reprise/remat.h"

#include "api/flat.h"
#include "api/inspect.h"
#include "control/body.h"
#include "remat/check_names.h"
#include "remat/checkpoint.h"
#include "remat/within_budget.h"

#include <algorithm>
#include <iostream>

namespace reprise {
namespace {

Attr prevent_cse_attr(const CheckpointOptions& options, std::size_t consts,
                      const std::vector<std::size_t>& argument, std::size_t arguments) {
  if (const bool* all = std::get_if<bool>(&options.prevent_cse)) return *all;
  const auto& per_argument = std::get<std::vector<bool>>(options.prevent_cse);
  if (per_argument.size() != arguments) {
    fail<TypeError>("checkpoint: prevent_cse must have one flag per argument, got ",
                    per_argument.size(), " for ", arguments);
  }
  std::vector<bool> flags(consts, false);
  for (std::size_t a : argument) flags.push_back(per_argument[a]);
  return OpaquePtr(std::make_shared<const FlagsParam>(std::move(flags)));
}

std::size_t checked(std::int64_t budget) {
  constexpr std::int64_t most = std::int64_t{1} << 57;
  if (budget < 0 || budget > most)
    fail<TypeError>("checkpoint: a budget is from 0 to 2^57 bytes, got ", budget);
  return static_cast<std::size_t>(budget);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const SavedResidual& r) {
  return out << r.type << " " << r.origin;
}

namespace detail {

Arrays checkpoint(const Callee& f, const Arrays& args, const std::vector<std::size_t>& argument,
                  std::size_t arguments, const CheckpointOptions& options) {
  const AtUser at(f.at);
  Traced t =
      trace(f.run, leaf_types(args),
            {.transform = "checkpoint", .name = f.name, .arg_names = f.arg_names, .body = true});
  t.program = intern("checkpoint:" + f.identity, std::move(t.program));
  check_names(options.policy, *t.program, options.strict);
  const Policy chosen =
      options.budget ? within_budget(options.policy, checked(*options.budget)) : options.policy;
  const Attr policy = chosen.defined()
                          ? Attr(OpaquePtr(std::make_shared<const PolicyParam>(chosen)))
                          : Attr(None{});
  return finished(remat_p.bind(
      concat(t.consts, args),
      {{"differentiated", false},
       {"jaxpr", t.program},
       {"policy", policy},
       {"prevent_cse", prevent_cse_attr(options, t.consts.size(), argument, arguments)}}));
}

void print(const std::vector<SavedResidual>& list) {
  for (const SavedResidual& r : list) std::cout << r << "\n";
}
void print(const FwdBwd& programs) { std::cout << programs << "\n"; }

}  // namespace detail

// ----------------------------------------------------------------------------------- side by side
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}
std::string padded(const std::vector<std::string>& lines, std::size_t i, std::size_t width) {
  std::string line = i < lines.size() ? lines[i] : "";
  line.resize(width, ' ');
  return line;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const FwdBwd& programs) {
  std::vector<std::string> left = lines_of(programs.forward.str()),
                           right = lines_of(programs.backward.str());
  const std::string titles[2] = {"forward computation:", "backward computation:"};
  std::size_t widths[2] = {titles[0].size(), titles[1].size()};
  for (const std::string& l : left) widths[0] = std::max(widths[0], l.size());
  for (const std::string& l : right) widths[1] = std::max(widths[1], l.size());
  const std::string blank(2 + widths[0] + 4 + widths[1] + 2, ' ');
  auto row = [&](const std::vector<std::string>& a, const std::vector<std::string>& b,
                 std::size_t i) {
    return "  " + padded(a, i, widths[0]) + "    " + padded(b, i, widths[1]) + "  ";
  };
  out << blank << "\n" << row({titles[0]}, {titles[1]}, 0) << "\n" << blank;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i)
    out << "\n" << row(left, right, i);
  return out;
}

}  // namespace reprise
