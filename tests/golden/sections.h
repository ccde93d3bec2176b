// Sections of JAX's outputs, compared with our programs and residual lists.
#pragma once

#include "golden/cases.h"

#include <regex>
#include <sstream>

namespace golden {

namespace P = rp::checkpoint_policies;
using Pair = std::pair<Array, Array>;

// One section: from its heading (without addresses) to the next one; no heading: the text before
// the first. Texts must follow in the order of the checks.
class Section {
 public:
  Section(const std::string& file, const std::string& heading) : name_(file + " " + heading) {
    std::istringstream in(read_file("jax/" + file + ".out"));
    bool inside = heading.empty(), found = inside;
    for (std::string line; std::getline(in, line);) {
      const bool is_heading = line.starts_with("## ") || line.starts_with("#### ");
      if (is_heading && inside) break;
      if (inside) text_ += without_numpy(line) + "\n";
      if (is_heading) inside = without_address(line.substr(line.find(' ') + 1)) == heading;
      found = found || inside;
    }
    REQUIRE_MESSAGE(found, "no section " << name_);
  }

  // The program is the next thing in the section that starts as a program does, in any column.
  void program(const std::string& ours) {
    INFO(name_);
    const std::size_t begin = next_program();
    for (std::size_t i = at_; i < begin; i += line_at(i).size() + 1) {
      CHECK_MESSAGE(!is_residual(i), "not compared: " << line_at(i));
    }
    CHECK(text_.substr(begin, ours.size()) == ours);
    at_ = std::min(begin + ours.size(), text_.size());
    if (text_[at_] == '\n') ++at_;
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
      CHECK(without_place(ours.str()) == without_place(next_line()));
    }
  }
  // The next line, whatever it is.
  void line(const std::string& ours) {
    INFO(name_);
    CHECK(ours == next_line());
  }
  // The floating-point numbers in the next line.
  void numbers(const std::vector<double>& ours) {
    INFO(name_);
    static const std::regex number(R"(-?\d+\.\d*(e[-+]\d+)?)");
    const std::string text = next_line();
    std::vector<double> theirs;
    for (std::sregex_iterator i(text.begin(), text.end(), number), end; i != end; ++i)
      theirs.push_back(std::stod(i->str()));
    REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      CHECK(ours[i] == doctest::Approx(theirs[i]).epsilon(1e-6));
  }
  void skip(const std::string& line) {
    at_ = text_.find(line + "\n", at_);
    REQUIRE_MESSAGE(at_ != std::string::npos, name_ << " has no line " << line);
    at_ += line.size() + 1;
  }
  // Nothing is left to be compared.
  void end() const {
    CHECK_MESSAGE(at_ == text_.size(),
                  name_ << " goes on: " << text_.substr(std::min(at_, text_.size()), 200));
  }

 private:
  std::size_t next_program() const {
    static const std::regex start(R"((^|\n)let \w+ = \{ lambda |\{ lambda )");
    std::smatch found;
    if (!std::regex_search(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.end(), found,
                           start))
      return text_.size();
    const std::size_t newline = found.str()[0] == '\n' ? 1 : 0;
    return at_ + static_cast<std::size_t>(found.position()) + newline;
  }
  std::string next_line() {
    const std::string line = line_at(at_);
    at_ = std::min(at_ + line.size() + 1, text_.size());
    return line;
  }
  std::string line_at(std::size_t i) const { return text_.substr(i, text_.find('\n', i) - i); }
  bool is_residual(std::size_t i) const {
    static const std::regex r(R"(^\w+(<host>)?\[[\d,]*\] (from|output of|named) )");
    return std::regex_search(line_at(i), r);
  }
  // Some of JAX's batching rules leave numpy's integers in the params: (np.int64(0),) is (0,).
  static std::string without_numpy(const std::string& line) {
    static const std::regex integer(R"(np\.int64\((\d+)\))");
    return std::regex_replace(line, integer, "$1");
  }
  static std::string without_address(const std::string& line) {
    static const std::regex address(" at 0x[0-9a-f]+");
    return std::regex_replace(line, address, "");
  }
  static std::string without_place(const std::string& line) {
    static const std::regex place(R"(((output of|named) .*) from .*$)");
    return std::regex_replace(line, place, "$1");
  }

  std::string name_, text_;
  std::size_t at_ = 0;
};

}  // namespace golden
