#include "corpus.h"

#include <reprise/errors.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace demo {

namespace rp = reprise;

Corpus::Corpus(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file || text.empty()) {
    rp::fail<rp::RuntimeError>("demo: cannot read a text, got the file '", path, "'");
  }
  const std::set<char> different(text.begin(), text.end());
  characters_.assign(different.begin(), different.end());
  numbers_.reserve(text.size());
  for (const char c : text) numbers_.push_back(static_cast<std::int32_t>(characters_.find(c)));
}

std::span<const std::int32_t> Corpus::opening(std::int64_t length) const {
  return std::span(numbers_).first(static_cast<std::size_t>(std::min(length, size())));
}

reprise::Array Corpus::pieces(std::int64_t count, std::int64_t length, std::mt19937& random) const {
  if (size() <= length) {
    rp::fail<rp::RuntimeError>("demo: the text is too short for pieces of ", length,
                               " characters, got ", size());
  }
  std::vector<std::int32_t> numbers;
  numbers.reserve(static_cast<std::size_t>(count * length));
  for (std::int64_t i = 0; i < count; ++i) {
    // Not a std distribution: these differ between standard libraries.
    const auto begin = numbers_.begin() + static_cast<std::int64_t>(random()) % (size() - length);
    numbers.insert(numbers.end(), begin, begin + length);
  }
  return rp::array(numbers, rp::Shape{count, length});
}

}  // namespace demo
