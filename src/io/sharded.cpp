#include "reprise/communicator.h"
#include "reprise/errors.h"
#include "reprise/io.h"
#include "reprise/io_sharded.h"
#include "reprise/reprise.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

namespace reprise::io::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* index_name = "index.safetensors";
constexpr const char* format_name = "reprise sharded 1";

std::string file_of(std::int64_t rank, std::int64_t ranks) {
  const auto five = [](std::int64_t n) {
    const std::string digits = std::to_string(n);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "rank-" + five(rank) + "-of-" + five(ranks) + ".safetensors";
}

// ------------------------------------------------------------------------------------------- boxes
struct Box {
  Shape begin, size;
};
// Where a rank stands along the axes of a mesh.
std::map<std::string, std::int64_t> place_of(const Mesh& mesh, std::int64_t rank) {
  std::map<std::string, std::int64_t> place;
  const std::vector<std::string> names = mesh.axis_names();
  for (std::size_t i = names.size(); i-- > 0;) {
    place[names[i]] = rank % mesh.axis_size(names[i]);
    rank /= mesh.axis_size(names[i]);
  }
  return place;
}
// The part of a whole array that a rank has; none: a rank before it has the same.
Box box_of(const Shape& whole, const Mesh& mesh, const PartitionSpec& spec, std::int64_t rank) {
  Box box{Shape(whole.size(), 0), whole};
  const auto place = place_of(mesh, rank);
  for (std::size_t d = 0; d < spec.entries().size(); ++d) {
    std::int64_t parts = 1, position = 0;
    for (const std::string& name : spec.entries()[d].names()) {
      parts *= mesh.axis_size(name);
      position = position * mesh.axis_size(name) + place.at(name);
    }
    if (d >= whole.size() || whole[d] % parts != 0)
      fail<TypeError>("load_sharded: the axes of a spec must divide the dimension, got ",
                      to_string(spec), " for (", join(whole, ", "), ")");
    box.size[d] = whole[d] / parts;
    box.begin[d] = position * box.size[d];
  }
  return box;
}
bool is_first(const Mesh& mesh, const PartitionSpec& spec, std::int64_t rank) {
  auto place = place_of(mesh, rank);
  for (const PartitionSpec::Entry& entry : spec.entries()) {
    for (const std::string& name : entry.names()) place.erase(name);
  }
  return std::all_of(place.begin(), place.end(), [](const auto& p) { return p.second == 0; });
}
const PartitionSpec& spec_at(const Specs& specs, std::size_t leaf, std::size_t leaves) {
  if (specs.is_for_all()) return specs.each()[0];
  if (specs.each().size() != leaves)
    fail<TypeError>("save_sharded: one spec, or one for each array is needed, got ",
                    specs.each().size(), " for ", leaves);
  return specs.each()[leaf];
}

// ------------------------------------------------------------------------------- ranks among each other
RankGroup all_ranks() {
  RankGroup group;
  group.ranks.resize(static_cast<std::size_t>(communicator().size()));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.position = communicator().rank();
  return group;
}
// Waits for all ranks; if some failed, all throw.
void agree(const std::string& folder, const std::optional<std::string>& error) {
  const std::int32_t mine = error ? 1 : 0;
  std::vector<std::int32_t> all(static_cast<std::size_t>(communicator().size()));
  communicator().all_gather(all_ranks(), reinterpret_cast<const std::byte*>(&mine),
                            reinterpret_cast<std::byte*>(all.data()), sizeof mine);
  std::vector<std::string> failed;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] != 0) failed.push_back(std::to_string(r));
  }
  if (failed.empty()) return;
  if (error) fail<RuntimeError>("save_sharded: ", *error);
  fail<RuntimeError>("save_sharded: all ranks must write their files, got an error on rank ",
                     join(failed, ", "), " for ", folder);
}
std::optional<std::string> error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------- index
// "8,8:0@0,0:1@2,0": the whole shape, then files and where their parts begin.
std::string numbers_text(const Shape& s) { return join(s, ","); }
std::optional<Shape> numbers_in(std::string_view text) {
  Shape out;
  while (!text.empty()) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || value < 0) return std::nullopt;
    out.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return out;
}
struct Entry {
  Shape whole;
  std::vector<std::pair<std::int64_t, Shape>> parts;  // file, begin
};
std::optional<Entry> entry_in(std::string_view text) {
  Entry entry;
  bool first = true;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t sign = item.find('@');
    if (first != (sign == std::string_view::npos)) return std::nullopt;
    const auto numbers = numbers_in(first ? item : item.substr(sign + 1));
    if (!numbers) return std::nullopt;
    if (first) {
      entry.whole = *numbers;
      first = false;
      continue;
    }
    const auto file = numbers_in(item.substr(0, sign));
    if (!file || file->size() != 1 || numbers->size() != entry.whole.size()) return std::nullopt;
    entry.parts.emplace_back((*file)[0], *numbers);
  }
  return entry;
}

void put_in_place(const std::string& made, const std::string& folder) {
  if (!fs::exists(folder)) {
    fs::rename(made, folder);
    return;
  }
  // both names change at once: there is never none
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0)
    throw std::runtime_error("the folder could not take the name " + folder);
  fs::remove_all(made);
}

// The part of one array that a box of it needs, from files that have others.
Array assembled(const Entry& entry, const Box& wanted,
                const std::function<Array(std::int64_t)>& part_in) {
  std::optional<Array> result;
  for (const auto& [file, begin] : entry.parts) {
    const Array part = part_in(file);
    Shape low, high, into;
    bool meets = part.shape().size() == wanted.size.size();
    for (std::size_t d = 0; meets && d < wanted.size.size(); ++d) {
      const std::int64_t from = std::max(begin[d], wanted.begin[d]);
      const std::int64_t to =
          std::min(begin[d] + part.shape()[d], wanted.begin[d] + wanted.size[d]);
      meets = from < to;
      low.push_back(from - begin[d]);
      high.push_back(to - begin[d]);
      into.push_back(from - wanted.begin[d]);
    }
    if (!meets) continue;
    if (part.shape() == wanted.size && begin == wanted.begin) return part;
    if (!result) result = zeros(wanted.size, part.dtype());
    Arrays starts;
    for (std::int64_t i : into) starts.emplace_back(static_cast<std::int32_t>(i));
    result = lax::dynamic_update_slice(*result, lax::slice(part, low, high), starts);
  }
  if (!result) throw std::runtime_error("the index names no file with this part");
  return *result;
}

}  // namespace

void save_sharded(const std::string& folder, const NamedLeaves& leaves, const Mesh& mesh,
                  const Specs& specs, Location at) {
  const AtUser scope(at);
  const std::int64_t ranks = communicator().size(), rank = communicator().rank();
  const std::string beside = folder + ".tmp";
  const bool is_writer = rank == 0;
  agree(folder, error_of([&] {
          if (!is_writer) return;
          fs::remove_all(beside);
          fs::create_directories(beside);
        }));
  Metadata index{{"format", format_name}, {"ranks", std::to_string(ranks)}};
  agree(folder, error_of([&] {
          NamedLeaves mine;
          for (std::size_t i = 0; i < leaves.values.size(); ++i) {
            const PartitionSpec& spec = spec_at(specs, i, leaves.values.size());
            const bool is_part = leaves.values[i].type().varying != nullptr;
            const Array part = is_part ? leaves.values[i] : shard(leaves.values[i], mesh, spec);
            Shape whole = part.shape();
            const Box unit = box_of(Shape(whole.size(), mesh.size()), mesh, spec, 0);
            for (std::size_t d = 0; d < whole.size(); ++d) whole[d] *= mesh.size() / unit.size[d];
            std::string entry = numbers_text(whole);
            for (std::int64_t r = 0; r < ranks; ++r) {
              if (!is_first(mesh, spec, r)) continue;
              entry +=
                  ":" + std::to_string(r) + "@" + numbers_text(box_of(whole, mesh, spec, r).begin);
            }
            index["array:" + path_text(leaves.paths[i])] = entry;
            if (!is_first(mesh, spec, rank)) continue;
            mine.paths.push_back(leaves.paths[i]);
            mine.values.push_back(part);
          }
          io::save_safetensors(beside + "/" + file_of(rank, ranks), mine);
        }));
  agree(folder, error_of([&] {
          if (!is_writer) return;
          io::save_safetensors(beside + "/" + index_name, NamedLeaves{}, {.metadata = index});
          put_in_place(beside, folder);
        }));
}

Arrays load_sharded(const std::string& folder, const NamedLeaves& like, const Mesh& mesh,
                    const Specs& specs, Location at) {
  const AtUser scope(at);
  const Metadata index = io::load_safetensors_metadata(folder + "/" + index_name);
  const auto format = index.find("format"), count = index.find("ranks");
  const auto ranks = count == index.end() ? std::nullopt : numbers_in(count->second);
  if (format == index.end() || format->second != format_name || !ranks || ranks->size() != 1)
    fail<RuntimeError>("load_sharded: the index is not of this format, got ", folder);
  std::map<std::int64_t, Dict> files;
  Arrays result;
  for (std::size_t i = 0; i < like.paths.size(); ++i) {
    const std::string name = path_text(like.paths[i]);
    const auto found = index.find("array:" + name);
    if (found == index.end())
      fail<TypeError>("load_sharded: no array has this name, got ", name, " in ", folder);
    const auto entry = entry_in(found->second);
    if (!entry) fail<RuntimeError>("load_sharded: the index is broken, got ", found->second);
    const PartitionSpec& spec = spec_at(specs, i, like.paths.size());
    const Box wanted = box_of(entry->whole, mesh, spec, communicator().rank());
    const auto part_in = [&](std::int64_t file) {
      auto read = files.find(file);
      if (read == files.end())
        read = files
                   .emplace(file, io::load_safetensors(folder + "/" + file_of(file, (*ranks)[0]),
                                                       {.x64 = true}))
                   .first;
      return leaf_at(read->second, like.paths[i]);
    };
    Array part;
    const auto error = error_of([&] { part = assembled(*entry, wanted, part_in); });
    if (error) fail<RuntimeError>("load_sharded: ", name, ": ", *error);
    result.push_back(as_shard(part, mesh, spec));
  }
  return result;
}

}  // namespace reprise::io::detail
