// Sections of JAX's outputs, compared with our programs and residual lists.
#pragma once

#include <regex>
#include <sstream>

#include "golden/cases.h"

namespace golden {

namespace P = rp::checkpoint_policies;
using Pair = std::pair<Array, Array>;

// One section: from its heading to the next one. Texts must follow in the order of the checks.
class Section {
 public:
  Section(const std::string& file, const std::string& heading) : name_(file + " " + heading) {
    std::istringstream in(read_file("jax/" + file + ".out"));
    bool inside = heading.empty();
    for (std::string line; std::getline(in, line);) {
      const bool is_heading = line.starts_with("## ") || line.starts_with("#### ");
      if (is_heading && inside) break;
      if (inside) text_ += line + "\n";
      inside = inside || line == "## " + heading || line == "#### " + heading;
    }
    REQUIRE_MESSAGE(!text_.empty(), "no section " << name_);
  }

  // The program is the next thing in the section that starts as a program does.
  void program(const std::string& ours) {
    INFO(name_);
    std::size_t begin = at_;
    while (begin < text_.size() && !starts_program(begin)) begin = text_.find('\n', begin) + 1;
    CHECK(text_.substr(begin, ours.size() + 1) == ours + "\n");
    at_ = std::min(begin + ours.size() + 1, text_.size());
  }
  template <class F, class... A>
  void traced(const F& f, const A&... args) {
    program(rp::make_jaxpr(f)(args...).str());
  }
  template <class F, class... A>
  void forward(const F& f, const A&... args) {
    program(rp::fwd_bwd(f, args...).forward.str());
  }
  // The next residual lines, without the places of the equations.
  template <class F, class... A>
  void residuals(const F& f, const A&... args) {
    INFO(name_);
    for (const rp::SavedResidual& r : rp::saved_residuals(f, args...)) {
      std::ostringstream ours;
      ours << r;
      const std::size_t end = text_.find('\n', at_);
      CHECK(without_place(ours.str()) == without_place(text_.substr(at_, end - at_)));
      at_ = end + 1;
    }
    CHECK(!std::regex_search(text_.substr(at_, text_.find('\n', at_) - at_), residual_line()));
  }
  void skip(const std::string& line) {
    at_ = text_.find(line + "\n", at_);
    REQUIRE_MESSAGE(at_ != std::string::npos, name_ << " has no line " << line);
    at_ += line.size() + 1;
  }
  // Nothing is left to be compared.
  void end() const {
    CHECK_MESSAGE(at_ == text_.size(), name_ << " goes on: " << text_.substr(std::min(at_, text_.size()), 200));
  }

 private:
  bool starts_program(std::size_t i) const {
    return text_.compare(i, 9, "{ lambda ") == 0 || text_.compare(i, 4, "let ") == 0;
  }
  static const std::regex& residual_line() {
    static const std::regex r(R"(^\w+(<host>)?\[[\d,]*\] (from|output of|named) )");
    return r;
  }
  static std::string without_place(const std::string& line) {
    static const std::regex place(R"(((output of|named) .*) from .*$)");
    return std::regex_replace(line, place, "$1");
  }

  std::string name_, text_;
  std::size_t at_ = 0;
};

}  // namespace golden
