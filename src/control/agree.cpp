#include "control/agree.h"

#include "ops/communicator.h"
#include "program/print.h"

#include <algorithm>
#include <numeric>

namespace reprise {
namespace {

struct Agreed {};

// Addresses of policies differ between processes.
std::string comparable_text(const Program& p) {
  const std::string text = to_text(p);
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (text[at] != 'x' || at == 0 || text[at - 1] != '0') continue;
    while (at + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[at + 1])) != 0)
      ++at;
  }
  return out;
}
std::uint64_t hash_of(const std::string& text) {  // the same in every process
  std::uint64_t h = 1469598103934665603ull;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  return h;
}

RankGroup all_ranks() {
  RankGroup group;
  group.ranks.resize(static_cast<std::size_t>(communicator().size()));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.position = communicator().rank();
  return group;
}
std::vector<std::uint64_t> gathered(std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator().size()));
  communicator().all_gather(all_ranks(), reinterpret_cast<const std::byte*>(&mine),
                            reinterpret_cast<std::byte*>(all.data()), sizeof mine);
  return all;
}
std::vector<std::string> gathered(std::string mine) {
  const std::vector<std::uint64_t> sizes = gathered(std::uint64_t{mine.size()});
  const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  mine.resize(longest);
  std::string all(longest * sizes.size(), '\0');
  communicator().all_gather(all_ranks(), reinterpret_cast<const std::byte*>(mine.data()),
                            reinterpret_cast<std::byte*>(all.data()), longest);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < sizes.size(); ++r) texts.push_back(all.substr(r * longest, sizes[r]));
  return texts;
}

std::string line_at(const std::string& text, std::size_t begin) {
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  const std::size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? "nothing" : line.substr(first);
}
[[noreturn]] void report_difference(const std::string& mine) {
  const std::vector<std::string> texts = gathered(mine);
  std::size_t other = 0;
  while (texts[other] == texts[0]) ++other;
  const std::string &a = texts[0], &b = texts[other];
  std::size_t line = 1, begin = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] != '\n') continue;
    begin = i + 1;
    ++line;
  }
  fail_with_hint<RuntimeError>(
      "let no rank decide by its number or its data what it traces",
      "shard_map: all ranks must run the same program, got a difference between rank 0 and rank ",
      other, " in line ", line, ": `", line_at(a, begin), "` and `", line_at(b, begin), "`");
}

}  // namespace

void agree_about(const Program& p) {
  if (communicator().size() == 1) return;
  derive<Agreed>(p, "agreed", [&] {
    const std::string text = comparable_text(p);
    const std::vector<std::uint64_t> hashes = gathered(hash_of(text));
    for (std::uint64_t h : hashes) {
      if (h != hashes[0]) report_difference(text);
    }
    return Agreed{};
  });
}

}  // namespace reprise
