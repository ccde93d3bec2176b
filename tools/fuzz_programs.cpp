// A libFuzzer target that reads, differentiates, plans and runs mutated programs. Needs clang++:
//
//   cmake --preset asan -D REPRISE_BUILD_FUZZERS=ON && cmake --build build/asan --target fuzz_programs
//   build/asan/fuzz_programs -max_total_time=600 -timeout=20 NEW_CORPUS tests/fuzz/corpus
//
// Besides libFuzzer's own mutations of bytes, those of programs: a number, a param's value or a
// whole param is replaced by another one of the same text or of a list, or left out.
#include "fuzz/try_program.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

struct Span {
  std::size_t begin, end;
};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Words and numbers.
std::vector<Span> words(const std::string& text) {
  std::vector<Span> found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > at) found.push_back({at, end});
    at = end + 1;
  }
  return found;
}
// From `key=` to the end of its value.
std::vector<Span> params(const std::string& text) {
  std::vector<Span> found;
  for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    std::size_t begin = at, end = at + 1;
    while (begin > 0 && in_word(text[begin - 1])) --begin;
    int depth = 0;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (depth == 0 && (c == ' ' || c == '\n' || c == ']' || c == ',')) break;
      depth += c == '(' || c == '[' || c == '{' ? 1 : 0;
      depth -= c == ')' || c == ']' || c == '}' ? 1 : 0;
      if (depth < 0) break;
    }
    if (begin < at && end > at + 1) found.push_back({begin, end});
  }
  return found;
}

template <class T>
const T& one_of(const std::vector<T>& items, std::mt19937& random) {
  return items[random() % items.size()];
}

void mutate(std::string& text, std::mt19937& random) {
  static const std::vector<std::string> values{"0",
                                               "1",
                                               "2",
                                               "-1",
                                               "3",
                                               "7",
                                               "64",
                                               "9223372036854775807",
                                               "-9223372036854775808",
                                               "None",
                                               "True",
                                               "False",
                                               "()",
                                               "(0,)",
                                               "(1, 0)",
                                               "(0, 1)",
                                               "((0, 0, 0),)",
                                               "((1, 1),)",
                                               "(([0], [0]), ([], []))",
                                               "float32",
                                               "int32",
                                               "bool",
                                               "bfloat16",
                                               "uint8",
                                               "nan",
                                               "fry",
                                               "ge",
                                               "f"};
  static const std::vector<std::string> types{"f32[]",      "f32[2]",    "i32[]", "bool[]",
                                              "f32[0]",     "f32[2,3]",  "u8[4]", "bf16[2]",
                                              "key<fry>[]", "float0[2]", "f16[3]"};
  const std::vector<Span> all_words = words(text), all_params = params(text);
  if (all_words.empty()) return;
  const auto part = [&](Span s) { return text.substr(s.begin, s.end - s.begin); };
  const auto replace = [&](Span s, const std::string& by) {
    text.replace(s.begin, s.end - s.begin, by);
  };
  const auto value_of = [&](Span s) { return Span{text.find('=', s.begin) + 1, s.end}; };
  const Span word = one_of(all_words, random), other = one_of(all_words, random);
  if (all_params.empty() || random() % 3 == 0) return replace(word, part(other));
  const Span param = one_of(all_params, random), from = one_of(all_params, random);
  switch (random() % 6) {
    case 0: return replace(param, "");
    case 1: return replace(param, part(from));
    case 2: return replace(value_of(param), part(value_of(from)));
    case 3: return replace(value_of(param), one_of(values, random));
    case 4: return replace(word, one_of(values, random));
    default: break;
  }
  const std::size_t colon = text.find(':', random() % text.size());
  if (colon == std::string::npos) return;
  const std::size_t end = text.find(']', colon);
  if (end != std::string::npos) replace({colon + 1, end + 1}, one_of(types, random));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<const char*>(data), size);
  const unsigned changes = 1 + random() % 3;
  for (unsigned i = 0; i < changes; ++i) mutate(text, random);
  text.resize(std::min(text.size(), most));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    try_program({reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::abort();
  }
  return 0;
}
