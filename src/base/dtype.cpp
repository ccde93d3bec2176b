#include "base/dtype.h"

#include "base/mesh.h"

#include <algorithm>
#include <array>
#include <ostream>

namespace reprise {
namespace {

struct DtypeRow {
  std::string_view short_name, long_name;
  std::size_t size;
};
// In the order of the enum.
constexpr std::array<DtypeRow, 15> dtype_rows{{{"bool", "bool", 1},
                                               {"u8", "uint8", 1},
                                               {"u16", "uint16", 2},
                                               {"u32", "uint32", 4},
                                               {"u64", "uint64", 8},
                                               {"i8", "int8", 1},
                                               {"i16", "int16", 2},
                                               {"i32", "int32", 4},
                                               {"i64", "int64", 8},
                                               {"f16", "float16", 2},
                                               {"bf16", "bfloat16", 2},
                                               {"f32", "float32", 4},
                                               {"f64", "float64", 8},
                                               {"float0", "float0", 1},
                                               {"key<fry>", "key<fry>", 8}}};
const DtypeRow& row(Dtype d) { return dtype_rows[static_cast<std::size_t>(d)]; }

std::optional<Dtype> find_dtype(std::string_view name, std::string_view DtypeRow::*column) {
  for (std::size_t i = 0; i < dtype_rows.size(); ++i) {
    if (dtype_rows[i].*column == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

enum class Category { boolean, integer, floating };
Category category(Dtype d) {
  if (d == Dtype::bool_) return Category::boolean;
  return is_floating(d) ? Category::floating : Category::integer;
}
bool is_unsigned(Dtype d) { return d >= Dtype::u8 && d <= Dtype::u64; }

Dtype promote_integers(Dtype a, Dtype b) {
  if (is_unsigned(a) == is_unsigned(b)) return itemsize(a) >= itemsize(b) ? a : b;
  const Dtype u = is_unsigned(a) ? a : b;
  const Dtype s = is_unsigned(a) ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  // The signed type that holds both; u64 with a signed type has none and becomes a weak float.
  if (u == Dtype::u8) return Dtype::i16;
  if (u == Dtype::u16) return Dtype::i32;
  return u == Dtype::u32 ? Dtype::i64 : Dtype::f32;
}
Dtype promote_floats(Dtype a, Dtype b) {
  if (a == b) return a;
  if (itemsize(a) == 2 && itemsize(b) == 2) return Dtype::f32;  // f16 with bf16
  return itemsize(a) >= itemsize(b) ? a : b;
}
Dtype promote_strong(Dtype a, Dtype b) {
  if (a == b) return a;
  const Category ca = category(a), cb = category(b);
  if (ca != cb) return ca > cb ? a : b;
  return ca == Category::integer ? promote_integers(a, b) : promote_floats(a, b);
}

}  // namespace

std::string_view short_name(Dtype d) { return row(d).short_name; }
std::string_view long_name(Dtype d) { return row(d).long_name; }
std::size_t itemsize(Dtype d) { return row(d).size; }
bool is_floating(Dtype d) { return d >= Dtype::f16 && d <= Dtype::f64; }
bool is_integer(Dtype d) { return d >= Dtype::u8 && d <= Dtype::i64; }
std::optional<Dtype> dtype_from_short_name(std::string_view n) {
  return find_dtype(n, &DtypeRow::short_name);
}
std::optional<Dtype> dtype_from_long_name(std::string_view n) {
  return find_dtype(n, &DtypeRow::long_name);
}

// A weak operand contributes only its category: it changes the other's dtype only when its category
// is higher, and then as the default dtype of that category.
Promoted promote_types(Dtype a, bool a_weak, Dtype b, bool b_weak) {
  if (a == b) return {a, a_weak && b_weak};
  for (Dtype d : {a, b}) {
    if (d == Dtype::float0 || d == Dtype::key) {
      fail<TypeError>("promote_types: no common dtype, got ", a, " and ", b);
    }
  }
  const Category ca = category(a), cb = category(b);
  if (a_weak == b_weak || ca == Category::boolean || cb == Category::boolean) {
    if (ca != cb) return ca > cb ? Promoted{a, a_weak} : Promoted{b, b_weak};
    const Dtype d = promote_strong(a, b);
    // u64 with a signed integer becomes JAX's weak float.
    return {d, (a_weak && b_weak) || (ca == Category::integer && is_floating(d))};
  }
  const Dtype strong = a_weak ? b : a;
  const Dtype weak = a_weak ? a : b;
  if (category(weak) > category(strong)) return {weak, true};
  return {strong, false};
}

std::ostream& operator<<(std::ostream& out, Dtype d) { return out << short_name(d); }

std::int64_t element_count(const Shape& shape) {
  // Sums of bytes of many arrays stay exact, also where a dimension of 0 makes the array empty.
  constexpr std::int64_t most = std::int64_t{1} << 52;
  std::int64_t extent = 1;
  std::uint64_t count = 1;
  for (std::int64_t d : shape) {
    count *= static_cast<std::uint64_t>(d);
    if (__builtin_mul_overflow(extent, std::max<std::int64_t>(d, 1), &extent) || extent > most) {
      fail<RuntimeError>("shape: too many elements, got ", to_string(shape));
    }
  }
  return static_cast<std::int64_t>(count);
}
std::string to_string(const Shape& shape) {
  return str("(", join(shape, ", "), shape.size() == 1 ? ",)" : ")");
}
Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}
std::int64_t canonical_axis(std::string_view op, std::int64_t axis, std::int64_t ndim) {
  if (axis < -ndim || axis >= ndim) {
    fail<TypeError>(op, ": axis out of range, got axis ", axis, " for ", ndim, " dimensions");
  }
  return axis < 0 ? axis + ndim : axis;
}

std::int64_t Type::size() const { return element_count(shape); }
std::size_t Type::nbytes() const { return static_cast<std::size_t>(size()) * itemsize(dtype); }

std::string to_string(const Type& t) {
  return str(short_name(t.dtype), t.memory_space == MemorySpace::host ? "<host>" : "", "[",
             join(t.shape, ","), "]", to_string(t.varying));
}
std::ostream& operator<<(std::ostream& out, const Type& t) { return out << to_string(t); }

}  // namespace reprise
