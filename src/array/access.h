// The inside of an Array, for the library only.
#pragma once

#include "array/literal.h"
#include "base/dtype.h"
#include "reprise/array.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace reprise {

using Var = std::int32_t;  // index of a variable in its program

// Numbers of traced values: whoever makes variables knows them, or why there are none.
class TracedValues {
 public:
  virtual Array concrete(const Array& traced, const char* what) const = 0;

 protected:
  ~TracedValues() = default;
};

// A variable of a program being traced. Trace ids are never reused.
struct TracedVar {
  const TracedValues* values;
  std::uint64_t trace = 0;
  Var var = -1;
  std::uint64_t thread = 0;
  Location made_at;
};

// What the handles of an array share. A program may have thousands of small results: this is kept
// small, and the elements lie in the same allocation.
struct ArrayData {
  enum class Kind : std::uint8_t { elements, number, variable };
  // Whose the memory of the elements is.
  enum class Holder : std::uint8_t {
    // of this content alone: it lies behind it or is a part of a block that nobody else uses
    content,
    owner,    // all that `owner` has
    foreign,  // of someone who may show it to others
  };

  explicit ArrayData(Kind k = Kind::elements) : kind(k) {}
  ArrayData(const ArrayData&) = delete;
  ArrayData& operator=(const ArrayData&) = delete;

  const Type* type = nullptr;           // in the same allocation or kept alive by `owner`
  const std::byte* elements = nullptr;  // likewise
  std::shared_ptr<const void> owner;
  Holder holder = Holder::foreign;
  const Kind kind;

  // made from a number: stays a literal in programs. Null: it was not
  const Literal* number() const;
  const TracedVar* traced() const;  // a variable, no elements. Null: it is none
};
struct TypedData : ArrayData {
  explicit TypedData(Type t, Kind k = Kind::elements) : ArrayData(k), own_type(std::move(t)) {
    type = &own_type;
  }
  const Type own_type;
};
struct NumberData : TypedData {
  explicit NumberData(const Literal&);
  const Literal literal;
  alignas(8) std::byte element[8] = {};
};
struct VariableData : TypedData {
  VariableData(Type t, TracedVar v) : TypedData(std::move(t), Kind::variable), var(v) {}
  const TracedVar var;
};
inline const Literal* ArrayData::number() const {
  return kind == Kind::number ? &static_cast<const NumberData*>(this)->literal : nullptr;
}
inline const TracedVar* ArrayData::traced() const {
  return kind == Kind::variable ? &static_cast<const VariableData*>(this)->var : nullptr;
}

// Elements being written; becomes an Array with finish().
class NewArray {
 public:
  explicit NewArray(Type type);
  explicit NewArray(std::shared_ptr<const Type> type);  // a checked one that many arrays share
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_);
  }
  std::byte* bytes() { return bytes_; }
  std::int64_t size() const { return size_; }
  Array finish() &&;

 private:
  template <class Data, class... Of>
  void allocate(const Type& type, Of&&... of);

  std::shared_ptr<ArrayData> data_;
  std::byte* bytes_ = nullptr;
  std::int64_t size_ = 0;
};

struct ArrayAccess {
  static const ArrayData& data(const Array& a);  // throws TypeError for an empty handle
  static const void* identity(const Array& a) { return a.data_.get(); }
  static bool is_last_handle(const Array& a);
  static const std::shared_ptr<const ArrayData>& shared(const Array& a) { return a.data_; }
  static Array make(std::shared_ptr<const ArrayData> d) { return Array(std::move(d)); }
};

inline const ArrayData& content(const Array& a) { return ArrayAccess::data(a); }
inline bool is_traced(const Array& a) { return content(a).traced() != nullptr; }
// A type in the place of an array: no elements, of no trace.
inline bool is_abstract(const Array& a) { return is_traced(a) && content(a).traced()->trace == 0; }
template <class T>
const T* elements(const Array& a) {
  return reinterpret_cast<const T*>(content(a).elements);
}

// Nobody else can see the elements, and nobody is still reading them: the memory may be used for
// something else, if the handle is given up.
inline bool is_last_handle(const Array& a) { return ArrayAccess::is_last_handle(a); }

// Equal for handles of one value: the same elements, or the same variable of the same trace.
std::uint64_t identity(const Array& a);

Array make_traced(Type type, TracedVar var);
Array make_number(const Literal&);                  // a literal that stays a literal when traced
Array with_type(const Array& concrete, Type type);  // same elements, other type of equal size
Array full_array(Type type, const Literal& value);

Array concrete(const Array& a, const char* what);  // itself when concrete

}  // namespace reprise
