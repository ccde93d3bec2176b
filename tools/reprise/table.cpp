#include "table.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace reprise::cli {
namespace {

std::string with_commas(std::string digits) {
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

}  // namespace

std::string grouped(std::size_t number) { return with_commas(std::to_string(number)); }
std::string grouped(double whole_number) {
  char digits[400];  // the longest double
  std::snprintf(digits, sizeof digits, "%.0f", whole_number);
  return with_commas(digits);
}

std::ostream& operator<<(std::ostream& out, const Table& table) {
  std::vector<std::size_t> widths(table.rows_[0].size());
  for (const auto& row : table.rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const auto& row : table.rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      out << (c == 0 ? row[c] + space : "  " + space + row[c]);
    }
    out << "\n";
  }
  return out;
}

}  // namespace reprise::cli
