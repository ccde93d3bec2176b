// A text as numbers, one per different character, and pieces of it to train on.
#pragma once

#include <reprise/array.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace demo {

class Corpus {
 public:
  // A RuntimeError if the file cannot be read.
  explicit Corpus(const std::string& path);

  std::int64_t size() const { return static_cast<std::int64_t>(numbers_.size()); }
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(characters_.size()); }

  // Pieces from random places, i32[count, length]. A RuntimeError if the text is shorter than that.
  reprise::Array pieces(std::int64_t count, std::int64_t length, std::mt19937& random) const;
  std::span<const std::int32_t> opening(std::int64_t length) const;  // how the text begins
  char decode(std::int32_t number) const {
    return characters_.at(static_cast<std::size_t>(number));
  }

 private:
  std::string characters_;             // by number
  std::vector<std::int32_t> numbers_;  // the text
};

}  // namespace demo
