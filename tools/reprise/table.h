// Tables on a terminal: the first column to the left, numbers to the right.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> titles) : rows_{std::move(titles)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  friend std::ostream& operator<<(std::ostream&, const Table&);

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string grouped(std::size_t number);  // 1,234,567
std::string grouped(double whole_number);

}  // namespace reprise::cli
