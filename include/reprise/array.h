// Arrays: immutable values of one element type and a shape, either concrete data or a variable of
// the program being traced.
//
//   rp::Array x = rp::array({{1.0, 2.0}, {3.0, 4.0}});   // f32[2,2]
//   x.shape();                                           // {2, 2}
//   std::vector<float> v = x.to_vector<float>();
//
// Copying an Array shares it. No live Array ever changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>
#if !defined(__clang__)
#include <source_location>
#endif

// A misuse that the compiler sees: the sentence stands in the first lines it prints, at the user's
// line.
#if defined(__clang__)  // whose `unavailable` keeps silent when the result is of no use either
#define REPRISE_UNAVAILABLE(sentence)                                                   \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"") \
      __attribute__((diagnose_if(true, sentence, "error"))) _Pragma("clang diagnostic pop")
#else
#define REPRISE_UNAVAILABLE(sentence) __attribute__((unavailable(sentence)))
#endif

#pragma GCC visibility push(default)
namespace reprise {

// ---------------------------------------------------------------------------------------- errors
// Five kinds under one base. Text: `op: rule broken, got facts`, then `  at file:line (function)` of
// the user's code, then a hint when the fix is known.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct TypeError : Error {  // shape, dtype, arity
  using Error::Error;
};
struct TraceError : Error {  // a value needed while tracing, a leaked traced value
  using Error::Error;
};
struct RuleError : Error {  // a primitive has no such rule
  using Error::Error;
};
struct RuntimeError : Error {  // memory, files
  using Error::Error;
};
struct InternalError : Error {  // a defect of this library
  using Error::Error;
};

// -------------------------------------------------------------------------------------- location
// A place in the user's code. `column` is the 0-based column of the (last) operand.
struct Location {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;
  std::uint32_t column = 0;

#if defined(__clang__)
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    const char* function = __builtin_FUNCTION(),
                                    std::uint32_t line = __builtin_LINE(),
                                    std::uint32_t column = __builtin_COLUMN()) {
    return {file, function, line, column - 1};
  }
#else
  static constexpr Location current(
      const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
      std::uint32_t line = __builtin_LINE(),
      std::uint32_t column = std::source_location::current().column()) {
    return {file, function, line, column};
  }
#endif
};

// ----------------------------------------------------------------------------------- dtype, type
enum class Dtype : std::uint8_t {
  bool_,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  float0,
  key,
};
inline constexpr Dtype bool_ = Dtype::bool_, uint8 = Dtype::u8, uint16 = Dtype::u16,
                       uint32 = Dtype::u32, uint64 = Dtype::u64, int8 = Dtype::i8,
                       int16 = Dtype::i16, int32 = Dtype::i32, int64 = Dtype::i64,
                       float16 = Dtype::f16, bfloat16 = Dtype::bf16, float32 = Dtype::f32,
                       float64 = Dtype::f64, float0 = Dtype::float0;

std::string_view short_name(Dtype);  // "f32", as in programs
std::string_view long_name(Dtype);   // "float32", as in params
std::size_t itemsize(Dtype);
bool is_floating(Dtype);
bool is_integer(Dtype);  // signed or unsigned, not bool

using Shape = std::vector<std::int64_t>;  // the size of each dimension; empty: a scalar

// Where a value lies: offloaded ones are on the host.
enum class MemorySpace : std::uint8_t { device, host };

// Axes of a mesh of ranks (reprise/shard_map.h).
struct MeshAxes;

// The type of a value: what a program knows about it. A weak type came from a C++ number and gives
// way to the other operand's type when dtypes are promoted.
struct Type {
  Dtype dtype = Dtype::f32;
  Shape shape = {};
  bool weak_type = false;
  MemorySpace memory_space = MemorySpace::device;
  const MeshAxes* varying = nullptr;  // ranks along these have values of their own; null: none
  bool operator==(const Type&) const = default;
  std::int64_t ndim() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t size() const;
  std::size_t nbytes() const;
};
std::string to_string(const Type&);  // "f32[5,4]"
std::ostream& operator<<(std::ostream&, const Type&);
std::ostream& operator<<(std::ostream&, Dtype);

// The dtype that JAX's promotion rules give for two operands.
struct Promoted {
  Dtype dtype;
  bool weak_type;
};
Promoted promote_types(Dtype a, bool a_weak, Dtype b, bool b_weak);

// C++ element types and their dtypes. Half-precision values are read and written as float.
template <class T>
constexpr Dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return Dtype::bool_;
  } else if constexpr (std::is_same_v<U, float>) {
    return Dtype::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return Dtype::f64;
  } else {
    static_assert(std::is_integral_v<U> && sizeof(U) <= 8, "no dtype for this C++ type");
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? Dtype::i8 : Dtype::u8;
    if constexpr (sizeof(U) == 2) return is_signed ? Dtype::i16 : Dtype::u16;
    if constexpr (sizeof(U) == 4) return is_signed ? Dtype::i32 : Dtype::u32;
    if constexpr (sizeof(U) == 8) return is_signed ? Dtype::i64 : Dtype::u64;
  }
}

// C++ numbers, which operations take beside Arrays.
template <class T>
concept Number = std::is_arithmetic_v<T>;

// ----------------------------------------------------------------------------------------- Array
struct ArrayData;   // the shared, immutable content (src/array/access.h)
class Index;        // one position of an indexing expression (ops_shape.h)
class IndexUpdate;  // the elements at an index, to be changed

// An immutable value: elements in memory, or a variable of the program that is being traced.
class Array {
  using I = const Index&;

 public:
  Array() = default;  // holds nothing: assign before use
  Array(const Array&) = default;
  Array(Array&&) = default;  // leaves the other one empty
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & = default;
  // Of a temporary: x[0] = 1 would change nothing.
  template <class T>
  REPRISE_UNAVAILABLE("an Array never changes, x[i] is a copy: write x = x.at(i).set(value)")
  void operator=(T&&) &&;
  // A C++ number is a weakly typed scalar: f32, i32 or bool.
  template <Number T>
  Array(T value) : Array(from_number(value)) {}  // NOLINT: implicit by design

  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  Dtype dtype() const { return type().dtype; }
  bool weak_type() const { return type().weak_type; }
  std::int64_t ndim() const { return type().ndim(); }
  std::int64_t shape(std::int64_t axis) const;  // negative counts from the end
  std::int64_t size() const { return type().size(); }
  std::size_t nbytes() const { return type().nbytes(); }
  bool defined() const { return data_ != nullptr; }

  // The one element as a C++ number, converted. Inside a traced function this asks for the number
  // of a traced value, which works outside jit, checkpoint, loops, vmap and make_jaxpr.
  template <Number T>
  T item(Location at = Location::current()) const {
    T out{};
    copy_to(&out, 1, dtype_of<T>(), at);
    return out;
  }
  // All elements in row-major order, converted.
  template <Number T>
  std::vector<T> to_vector(Location at = Location::current()) const {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size()));
      copy_to(bytes.data(), size(), Dtype::bool_, at);
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> out(static_cast<std::size_t>(size()));
      copy_to(out.data(), size(), dtype_of<T>(), at);
      return out;
    }
  }
  // The elements in place; T must be the array's own element type.
  template <Number T>
  std::span<const T> data(Location at = Location::current()) const {
    return {static_cast<const T*>(raw_data(dtype_of<T>(), at)), static_cast<std::size_t>(size())};
  }

  Array astype(Dtype, Location at = Location::current()) const;
  Array reshape(Shape, Location at = Location::current()) const;  // one dimension may be -1
  // x[i], x[slice(1, 3)], x[indices]; x(i, slice(1, 3), all); x.at(i).set(v), .add(v), ...
  // One Index for each of the first dimensions; include ops.h. (Overloads and not a template: the
  // conversion to Index notes the line.)
  Array operator[](I) const;
  Array operator()(I) const;
  Array operator()(I, I) const;
  Array operator()(I, I, I) const;
  Array operator()(I, I, I, I) const;
  Array operator()(I, I, I, I, I) const;
  Array operator()(I, I, I, I, I, I) const;
  IndexUpdate at(I) const;
  IndexUpdate at(I, I) const;
  IndexUpdate at(I, I, I) const;
  IndexUpdate at(I, I, I, I) const;
  IndexUpdate at(I, I, I, I, I) const;
  IndexUpdate at(I, I, I, I, I, I) const;

  Array& operator+=(const Array&) &;
  Array& operator-=(const Array&) &;
  Array& operator*=(const Array&) &;
  Array& operator/=(const Array&) &;
  template <class T>
  REPRISE_UNAVAILABLE("an Array never changes, x[i] is a copy: write x = x.at(i).add(value)")
  void operator+=(T&&) &&;
  template <class T>
  REPRISE_UNAVAILABLE("an Array never changes, x[i] is a copy: write x = x.at(i).add(-value)")
  void operator-=(T&&) &&;
  template <class T>
  REPRISE_UNAVAILABLE("an Array never changes, x[i] is a copy: write x = x.at(i).multiply(value)")
  void operator*=(T&&) &&;
  template <class T>
  REPRISE_UNAVAILABLE(
      "an Array never changes, x[i] is a copy: write x = x.at(i).multiply(1.0 / value)")
  void
  operator/=(T&&) &&;

  // Not a truth value: it may have many elements, and none while it is traced.
  REPRISE_UNAVAILABLE(
      "an Array is not a truth value: choose elements with rp::where(condition, a, b), a "
      "computation with "
      "rp::cond, or read the number with condition.item<bool>()")
  explicit operator bool() const;

 private:
  friend struct ArrayAccess;
  explicit Array(std::shared_ptr<const ArrayData> data) : data_(std::move(data)) {}
  template <Number T>
  static Array from_number(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return from_bool(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return from_double(static_cast<double>(value));
    } else if constexpr (std::is_signed_v<T>) {
      return from_int(static_cast<std::int64_t>(value));
    } else {
      return from_uint(static_cast<std::uint64_t>(value));
    }
  }
  static Array from_bool(bool);
  static Array from_double(double);
  static Array from_int(std::int64_t);
  static Array from_uint(std::uint64_t);
  void copy_to(void* out, std::int64_t count, Dtype as, Location at) const;
  const void* raw_data(Dtype expected, Location at) const;

  std::shared_ptr<const ArrayData> data_;
};

using Arrays = std::vector<Array>;  // what operations of several results give

// Nothing: an empty tree, for functions without inputs to scan over or without outputs to stack.
struct None {
  bool operator==(const None&) const = default;
};
inline constexpr None none{};

std::ostream& operator<<(std::ostream&, const Array&);  // numpy-like
std::string to_string(const Array&);

// An operand of an operation: an Array or a number, and the place where it was written.
class Operand {
 public:
  Operand(const Array& x, Location here = Location::current()) : array(x), at(here) {}  // NOLINT
  Operand(Array&& x, Location here = Location::current())                               // NOLINT
      : array(std::move(x)), at(here) {}
  template <Number T>
  Operand(T x, Location here = Location::current()) : array(x), at(here) {}  // NOLINT
  operator const Array&() const { return array; }                            // NOLINT
  Array array;
  Location at;
};

// ------------------------------------------------------------------------------- from C++ values
// Nested braces of numbers, to any depth.
class Nested {
 public:
  template <Number T>
  Nested(T value)  // NOLINT: implicit by design
      : dtype_(std::is_same_v<T, bool>       ? Dtype::bool_
               : std::is_floating_point_v<T> ? Dtype::f32
                                             : Dtype::i32),
        number_(static_cast<double>(value)) {
    if constexpr (std::is_signed_v<T>) is_negative_ = value < 0;
    if constexpr (std::is_integral_v<T>) integer_ = static_cast<std::uint64_t>(value);
  }
  Nested(std::initializer_list<Nested> items) : items_(items), is_list_(true) {}

 private:
  friend Array array(const Nested&, std::optional<Dtype>, Location);
  friend struct NestedReader;
  Dtype dtype_ = Dtype::f32;
  bool is_negative_ = false;
  double number_ = 0;
  std::uint64_t integer_ = 0;  // the bits of an integer, which a double may not hold
  std::vector<Nested> items_;
  bool is_list_ = false;
};
Array array(const Nested& values, std::optional<Dtype> dtype = std::nullopt,
            Location at = Location::current());
Array from_bytes(const void* data, Type type, Location at = Location::current());

// A copy of `values` with the given shape (one dimension by default), dtype of T.
template <Number T>
Array array(std::span<const T> values, std::optional<Shape> shape = std::nullopt,
            Location at = Location::current());
template <Number T>
Array array(const std::vector<T>& values, std::optional<Shape> shape = std::nullopt,
            Location at = Location::current());
template <Number T>
Array array(const T* values, Shape shape, Location at = Location::current()) {
  return from_bytes(values, Type{dtype_of<T>(), std::move(shape)}, at);
}
// An array over memory that stays valid and unchanged while any copy of the result lives; `owner`
// is released with the last copy. Memory not aligned to 64 bytes is copied.
Array view(const void* data, Type type, std::shared_ptr<const void> owner,
           Location at = Location::current());
Array checked_array(const void* data, std::size_t count, Dtype, std::optional<Shape>, Location);

template <Number T>
Array array(std::span<const T> values, std::optional<Shape> shape, Location at) {
  return checked_array(values.data(), values.size(), dtype_of<T>(), std::move(shape), at);
}
template <Number T>
Array array(const std::vector<T>& values, std::optional<Shape> shape, Location at) {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return checked_array(bytes.data(), bytes.size(), Dtype::bool_, std::move(shape), at);
  } else {
    return checked_array(values.data(), values.size(), dtype_of<T>(), std::move(shape), at);
  }
}

// Bytes held by all arrays and running programs of this process, and the largest value since the
// last reset.
std::size_t live_bytes();
std::size_t peak_live_bytes();
void reset_peak_live_bytes();
// Large blocks are kept for reuse when they are freed, up to 1 GiB; this gives them back to the
// system.
void release_free_memory();

}  // namespace reprise
#pragma GCC visibility pop
