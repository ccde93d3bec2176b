// The inside of an Array, for the library only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "array/literal.h"
#include "base/dtype.h"
#include "reprise/array.h"

namespace reprise {

using Var = std::int32_t;  // index of a variable in its program

// A variable of a program being traced. Trace ids are never reused.
struct TracedVar {
  std::uint64_t trace = 0;
  Var var = -1;
  std::uint64_t thread = 0;
  Location made_at;
};

struct ArrayData {
  Type type;
  // Concrete: the elements, in `small` or kept alive by `owner`.
  const std::byte* elements = nullptr;
  std::shared_ptr<const void> owner;
  bool is_ours = false;  // `owner` owns these elements and nothing else, and they were allocated here
  alignas(8) std::byte small[8] = {};
  std::optional<Literal> number;   // made from a number: stays a literal in programs
  std::optional<TracedVar> traced;  // set: a variable, no elements
};

// Elements being written; becomes an Array with finish().
class NewArray {
 public:
  explicit NewArray(Type type);
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_);
  }
  std::byte* bytes() { return bytes_; }
  std::int64_t size() const { return size_; }
  Array finish() &&;

 private:
  std::shared_ptr<ArrayData> data_;
  std::byte* bytes_;
  std::int64_t size_;
};

struct ArrayAccess {
  static const ArrayData& data(const Array& a);  // throws TypeError for an empty handle
  static const void* identity(const Array& a) { return a.data_.get(); }
  static bool is_last_handle(const Array& a);
  static Array make(std::shared_ptr<const ArrayData> d) { return Array(std::move(d)); }
};

inline const ArrayData& content(const Array& a) { return ArrayAccess::data(a); }
inline bool is_traced(const Array& a) { return content(a).traced.has_value(); }
template <class T>
const T* elements(const Array& a) {
  return reinterpret_cast<const T*>(content(a).elements);
}

// Nobody else can see the elements, and nobody is still reading them: the memory may be used for something
// else, if the handle is given up.
inline bool is_last_handle(const Array& a) { return ArrayAccess::is_last_handle(a); }

// Equal for handles of one value: the same elements, or the same variable of the same trace.
std::uint64_t identity(const Array& a);

Array make_traced(Type type, TracedVar var);
Array make_number(const Literal&);                 // a literal that stays a literal when traced
Array with_type(const Array& concrete, Type type);  // same elements, other type of equal size
Array full_array(Type type, const Literal& value);

// Numbers of a traced value: set by program/trace.cpp, which knows the recorded program.
using ConcreteValue = Array (*)(const Array& traced, const char* what);
extern ConcreteValue concrete_value_of_traced;
Array concrete(const Array& a, const char* what);  // itself when concrete

}  // namespace reprise
