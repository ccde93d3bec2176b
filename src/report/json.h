// The data of a report as JSON that may stand inside of a page.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reprise {

// A JSON string. Nothing in it can end the script element around it; bytes that are no UTF-8 are
// replaced.
std::string json_quoted(std::string_view text);

// Texts that occur many times are written once; everywhere else stands their number.
class JsonStrings {
 public:
  std::string number(const std::string& text);
  std::string list() const;  // of all texts

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

std::string json_list(const std::vector<std::string>& items);
std::string json_list(const std::vector<std::size_t>& numbers);

}  // namespace reprise
