#include "io/elements.h"

#include "reprise/lax.h"

#include <algorithm>
#include <iostream>
#include <mutex>
#include <set>

namespace reprise::io {

NamedArrays named_arrays(const char* op, const NamedLeaves& leaves, const std::string& separator) {
  NamedArrays out;
  for (std::size_t i = 0; i < leaves.paths.size(); ++i) {
    const KeyPath& path = leaves.paths[i];
    const Array& value = leaves.values[i];
    if (path.empty()) {
      fail_with_hint<TypeError>("put it into a Dict", op, ": a single array has no name, got ",
                                value.type());
    }
    for (const std::string& key : path) {
      if (path.size() == 1 || separator.empty() || key.find(separator) == std::string::npos)
        continue;
      fail_with_hint<TypeError>("set another .separator", op,
                                ": a key must not hold the separator '", separator, "', got '", key,
                                "'");
    }
    if (value.dtype() == Dtype::key) {
      fail_with_hint<TypeError>("save rp::random::key_data(key)", op,
                                ": PRNG keys have no form in files, got ", value.type(), " in '",
                                join(path, separator), "'");
    }
    if (value.dtype() == Dtype::float0) {
      fail<TypeError>(op, ": float0 has no form in files, got '", join(path, separator), "'");
    }
    out.emplace_back(join(path, separator), value);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto twice = std::adjacent_find(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != out.end())
    fail<TypeError>(op, ": two leaves have the same name, got '", twice->first, "'");
  return out;
}

namespace {

template <class T>
std::span<const std::byte> bytes_in(const Array& x) {
  return std::as_bytes(x.data<T>());
}

std::span<const std::byte> bytes_in_place(const Array& x) {
  switch (x.dtype()) {
    case Dtype::bool_: return bytes_in<bool>(x);
    case Dtype::u8: return bytes_in<std::uint8_t>(x);
    case Dtype::u16: return bytes_in<std::uint16_t>(x);
    case Dtype::u32: return bytes_in<std::uint32_t>(x);
    case Dtype::u64: return bytes_in<std::uint64_t>(x);
    case Dtype::i8: return bytes_in<std::int8_t>(x);
    case Dtype::i16: return bytes_in<std::int16_t>(x);
    case Dtype::i32: return bytes_in<std::int32_t>(x);
    case Dtype::i64: return bytes_in<std::int64_t>(x);
    case Dtype::f32: return bytes_in<float>(x);
    case Dtype::f64: return bytes_in<double>(x);
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::float0:
    case Dtype::key: break;
  }
  fail<InternalError>("io: no bytes for ", x.type());
}

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

}  // namespace

// C++ has no type for halves: their bits are looked at as integers.
Elements::Elements(const Array& x)
    : holder(is_half(x.dtype()) ? lax::bitcast_convert_type(x, Dtype::u16) : x),
      bytes(bytes_in_place(holder)) {}

std::optional<std::uint64_t> bytes_of(Dtype dtype, const std::vector<std::uint64_t>& shape) {
  if (shape.size() > max_rank) return std::nullopt;
  constexpr std::uint64_t limit = std::uint64_t{1} << 52;
  std::uint64_t total = itemsize(dtype);
  bool is_empty = false;
  for (const std::uint64_t d : shape) {  // the other dimensions of an empty array have limits too
    is_empty = is_empty || d == 0;
    if (d == 0) continue;
    if (total > limit / d) return std::nullopt;
    total *= d;
  }
  return is_empty ? 0 : total;
}

void check_bools(const InputFile& file, const std::string& name, Dtype dtype,
                 std::span<const std::byte> bytes) {
  if (dtype != Dtype::bool_) return;
  const auto odd =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (odd == bytes.end()) return;
  file.reject("a bool must be 0 or 1, got ", static_cast<int>(*odd), " in the array '", name, "'");
}

namespace {

template <class To, class From>
Array narrowed(const InputFile& file, const std::string& name, const Array& x) {
  const std::span<const From> from = x.data<From>();
  const Buffer buffer(from.size() * sizeof(To));
  auto* to = reinterpret_cast<To*>(buffer.data());
  for (const From value : from) {
    if constexpr (std::is_integral_v<To>) {
      if (!std::in_range<To>(value)) {
        file.reject("an integer does not fit 32 bits, which x64 = false asks for, got ", value,
                    " in the array '", name, "'");
      }
    }
    *to++ = static_cast<To>(value);
  }
  return buffer.to_array({dtype_of<To>(), x.shape()});
}

// Once for each file, and not for thousands of them.
void warn_of_float64(const InputFile& file, const std::string& name) {
  constexpr std::size_t most_files = 16;
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.size() >= most_files || !told.insert(file.path()).second) return;
  std::cerr << "reprise: warning: " << file.op() << ": '" << file.path()
            << "' holds float64, first in '" << shown(name)
            << "': what is computed with it becomes float64 too, where JAX would load float32; "
               "{.x64 = false} does as JAX, {.x64 = true} keeps it without this warning\n";
}

}  // namespace

Array DictBuilder::at_precision(const std::string& name, Array value) const {
  if (!x64_ && value.dtype() == Dtype::f64) warn_of_float64(file_, name);
  if (x64_.value_or(true)) return value;
  if (value.dtype() == Dtype::f64) return narrowed<float, double>(file_, name, value);
  if (value.dtype() == Dtype::i64) {
    return narrowed<std::int32_t, std::int64_t>(file_, name, value);
  }
  if (value.dtype() == Dtype::u64) {
    return narrowed<std::uint32_t, std::uint64_t>(file_, name, value);
  }
  return value;
}

void DictBuilder::add(const std::string& name, Array value) {
  constexpr int deepest = 256;  // trees are walked by recursion
  Dict* at = &out_;
  std::size_t begin = 0;
  int depth = 0;
  auto taken = [&] { file_.reject("one name is the beginning of another, got '", name, "'"); };
  while (!separator_.empty()) {
    const std::size_t end = name.find(separator_, begin);
    if (end == std::string::npos) break;
    if (++depth > deepest)
      file_.reject("a name has more than ", deepest, " parts, got one of ", name.size(), " bytes");
    auto& node = at->items().try_emplace(name.substr(begin, end - begin), Dict()).first->second;
    at = std::get_if<Dict>(&node);
    if (at == nullptr) taken();
    begin = end + separator_.size();
  }
  const auto [place, is_new] =
      at->items().try_emplace(name.substr(begin), at_precision(name, std::move(value)));
  if (!is_new) taken();
}

}  // namespace reprise::io
