#include "reprise/array.h"

#include "array/access.h"
#include "array/place.h"
#include "base/cast.h"
#include "base/memory.h"

#include <cstring>
#include <utility>

namespace reprise {

const ArrayData& ArrayAccess::data(const Array& a) {
  if (!a.data_) {
    fail_with_hint<TypeError>(
        "assign it first; one that was given away with std::move, as a donated argument, is empty "
        "until it is assigned again",
        "array: used before a value was assigned, got an empty Array");
  }
  return *a.data_;
}

bool ArrayAccess::is_last_handle(const Array& a) {
  const ArrayData& d = data(a);
  if (d.holder == ArrayData::Holder::foreign || a.data_.use_count() != 1) return false;
  if (d.holder == ArrayData::Holder::owner && d.owner.use_count() != 1) return false;
  // Reads by threads that have given up their handles come before what the caller writes: giving up
  // a copy waits for them, which asking for the count does not.
  std::shared_ptr<const ArrayData>(a.data_).reset();
  std::shared_ptr<const void>(d.owner).reset();
  return true;
}

// ------------------------------------------------------------------------------------- NewArray
namespace {

constexpr std::size_t scalar_bytes = 8;  // up to here elements need no alignment of their own

// Memory for an object with elements behind it.
template <class T>
struct ElementsBehind {
  using value_type = T;
  explicit ElementsBehind(std::size_t n) : bytes(n) {}
  template <class U>
  ElementsBehind(const ElementsBehind<U>& other)
      : bytes(other.bytes) {}  // NOLINT: allocators convert

  T* allocate(std::size_t) {
    return static_cast<T*>(bytes <= scalar_bytes ? ::operator new(sizeof(T) + scalar_bytes)
                                                 : allocate_elements(bytes, in_front));
  }
  void deallocate(T* memory, std::size_t) noexcept {
    if (bytes <= scalar_bytes)
      ::operator delete(memory);
    else
      free_elements(memory, bytes, in_front);
  }
  bool operator==(const ElementsBehind&) const = default;

  static constexpr std::size_t in_front =
      (sizeof(T) + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  std::size_t bytes;
};

std::byte* behind(void* object, std::size_t bytes) {
  const std::uintptr_t alignment = bytes <= scalar_bytes ? scalar_bytes : buffer_alignment;
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(object) + alignment - 1) /
                                      alignment * alignment);
}

}  // namespace

template <class Data, class... Of>
void NewArray::allocate(const Type& type, Of&&... of) {
  size_ = element_count(type.shape);
  std::size_t bytes = static_cast<std::size_t>(size_) * itemsize(type.dtype);
  std::byte* const placed = PlaceResults::take(type);
  if (placed != nullptr) bytes = 0;
  const auto data =
      std::allocate_shared<Data>(ElementsBehind<Data>(bytes), std::forward<Of>(of)...);
  bytes_ = placed != nullptr ? placed : behind(data.get() + 1, bytes);
  data->elements = bytes_;
  if (placed == nullptr) data->holder = ArrayData::Holder::content;
  data_ = std::move(data);
}
NewArray::NewArray(Type type) {
  for (std::int64_t d : type.shape) {
    if (d < 0)
      fail<TypeError>("array: dimensions must not be negative, got ", to_string(type.shape));
  }
  allocate<TypedData>(type, std::move(type));
}
NewArray::NewArray(std::shared_ptr<const Type> type) {
  allocate<ArrayData>(*type);
  data_->type = type.get();
  data_->owner = std::move(type);
}
namespace {
thread_local PlaceResults* placing = nullptr;
}
PlaceResults::PlaceResults(std::vector<Target> targets)
    : targets_(std::move(targets)), outer_(placing) {
  placing = this;
}
PlaceResults::~PlaceResults() { placing = outer_; }
std::byte* PlaceResults::take(const Type& type) {
  if (placing == nullptr) return nullptr;
  for (Target& t : placing->targets_) {
    if (t.memory != nullptr && *t.type == type) return std::exchange(t.memory, nullptr);
  }
  return nullptr;
}
Array array_at(const std::byte* elements, const Type& type, std::shared_ptr<const void> owner) {
  auto d = std::make_shared<TypedData>(type);
  d->elements = elements;
  if (owner != nullptr) d->holder = ArrayData::Holder::content;
  d->owner = std::move(owner);
  return ArrayAccess::make(std::move(d));
}
Array NewArray::finish() && { return ArrayAccess::make(std::move(data_)); }

// ------------------------------------------------------------------------------------- builders
Array make_traced(Type type, TracedVar var) {
  return ArrayAccess::make(std::make_shared<const VariableData>(std::move(type), var));
}

std::uint64_t identity(const Array& a) {
  const TracedVar* traced = content(a).traced();
  if (traced == nullptr) return reinterpret_cast<std::uintptr_t>(ArrayAccess::identity(a));
  constexpr std::uint64_t traced_mark = std::uint64_t{1} << 63;  // no address has it
  return traced_mark ^ (traced->trace << 32) ^ static_cast<std::uint64_t>(traced->var);
}

NumberData::NumberData(const Literal& l) : TypedData(l.type(), Kind::number), literal(l) {
  store_literal(l, element);
  elements = element;
  holder = Holder::content;
}
Array make_number(const Literal& l) { return ArrayAccess::make(std::make_shared<NumberData>(l)); }

Array with_type(const Array& a, Type type) {
  const ArrayData& from = content(a);
  auto d = std::make_shared<TypedData>(std::move(type));
  d->elements = from.elements;
  if (from.holder == ArrayData::Holder::content) {
    d->owner = ArrayAccess::shared(a);
    d->holder = ArrayData::Holder::owner;
  } else {
    d->owner = from.owner;
    d->holder = from.holder;
  }
  return ArrayAccess::make(std::move(d));
}

Array full_array(Type type, const Literal& value) {
  NewArray out(std::move(type));
  std::byte element[8];
  store_literal(value, element);
  const std::size_t width = itemsize(value.dtype);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::memcpy(out.bytes() + static_cast<std::size_t>(i) * width, element, width);
  }
  return std::move(out).finish();
}

Array concrete(const Array& a, const char* what) {
  if (!is_traced(a)) return a;
  return content(a).traced()->values->concrete(a, what);
}

// ---------------------------------------------------------------------------------- from numbers
Array Array::from_bool(bool v) {
  Literal l;
  l.dtype = Dtype::bool_;
  l.integer = v;
  return make_number(l);
}
Array Array::from_double(double v) { return make_number(make_literal(Dtype::f32, v, true)); }
Array Array::from_int(std::int64_t v) {
  if (v != static_cast<std::int32_t>(v)) {
    fail_with_hint<TypeError>("make a 64-bit scalar with rp::full({}, value, rp::int64)",
                              "array: an integer must fit the default dtype i32, got ", v);
  }
  Literal l;
  l.dtype = Dtype::i32;
  l.weak_type = true;
  l.integer = v;
  return make_number(l);
}
Array Array::from_uint(std::uint64_t v) {
  if (v > INT32_MAX) {
    fail_with_hint<TypeError>("make a 64-bit scalar with rp::full({}, value, rp::uint64)",
                              "array: an integer must fit the default dtype i32, got ", v);
  }
  return from_int(static_cast<std::int64_t>(v));
}

Array from_bytes(const void* data, Type type, Location at) {
  const AtUser scope(at);
  const std::size_t width = itemsize(type.dtype);
  NewArray out(std::move(type));
  if (out.size() > 0) std::memcpy(out.bytes(), data, static_cast<std::size_t>(out.size()) * width);
  return std::move(out).finish();
}

Array checked_array(const void* data, std::size_t count, Dtype dtype, std::optional<Shape> shape,
                    Location at) {
  const AtUser scope(at);
  Shape s = shape ? *std::move(shape) : Shape{static_cast<std::int64_t>(count)};
  if (element_count(s) != static_cast<std::int64_t>(count)) {
    fail<TypeError>("array: the number of values must match the shape, got ", count,
                    " values for shape ", to_string(s));
  }
  return from_bytes(data, Type{dtype, std::move(s)}, at);
}

Array view(const void* data, Type type, std::shared_ptr<const void> owner, Location at) {
  const AtUser scope(at);
  if (reinterpret_cast<std::uintptr_t>(data) % buffer_alignment != 0) {
    return from_bytes(data, std::move(type), at);
  }
  element_count(type.shape);  // rejects absurd shapes
  auto d = std::make_shared<TypedData>(std::move(type));
  d->elements = static_cast<const std::byte*>(data);
  d->owner = owner ? std::move(owner) : std::shared_ptr<const void>(data, [](const void*) {});
  return ArrayAccess::make(std::move(d));
}

// ----------------------------------------------------------------------------------------- nested
struct NestedReader {
  Shape shape;
  Dtype dtype = Dtype::bool_;
  std::vector<const Nested*> values;

  void find_shape(const Nested& n) {
    if (!n.is_list_) return;
    shape.push_back(static_cast<std::int64_t>(n.items_.size()));
    if (!n.items_.empty()) find_shape(n.items_[0]);
  }
  void read(const Nested& n, std::size_t depth) {
    const bool list_expected = depth < shape.size();
    if (n.is_list_ != list_expected ||
        (n.is_list_ && static_cast<std::int64_t>(n.items_.size()) != shape[depth])) {
      fail<TypeError>("array: nested braces must be rectangular, got a different size at depth ",
                      depth);
    }
    if (!n.is_list_) {
      values.push_back(&n);
      dtype = promote_types(dtype, false, n.dtype_, false).dtype;
    }
    for (const Nested& item : n.items_) read(item, depth + 1);
  }
  // Integers keep all their bits and must fit; other numbers are converted.
  static void store(const Nested& n, Dtype dtype, std::byte* element) {
    if (dtype == Dtype::float0) return store_literal(make_literal(dtype, 0), element);
    visit_dtype(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (n.dtype_ == Dtype::i32) {
          const T value = static_cast<T>(n.integer_);
          const bool is_negative = std::is_signed_v<T> && static_cast<std::int64_t>(value) < 0;
          if (n.is_negative_ != is_negative || static_cast<std::uint64_t>(value) != n.integer_)
            does_not_fit(n, dtype);
          return static_cast<void>(std::memcpy(element, &value, sizeof value));
        }
      }
      store_literal(make_literal(dtype, n.number_), element);
    });
  }
  [[noreturn]] static void does_not_fit(const Nested& n, Dtype dtype) {
    const std::string value =
        n.is_negative_ ? str(static_cast<std::int64_t>(n.integer_)) : str(n.integer_);
    fail_with_hint<TypeError>("name a dtype that holds it, as in rp::array({...}, rp::int64)",
                              "array: an integer must fit its dtype, got ", value, " for ",
                              long_name(dtype));
  }
};

Array array(const Nested& nested, std::optional<Dtype> dtype, Location at) {
  const AtUser scope(at);
  NestedReader reader;
  reader.find_shape(nested);
  reader.read(nested, 0);
  if (reader.values.empty()) reader.dtype = Dtype::f32;
  const Type type{dtype.value_or(reader.dtype), reader.shape};
  NewArray out(type);
  const std::size_t width = itemsize(type.dtype);
  for (std::size_t i = 0; i < reader.values.size(); ++i) {
    NestedReader::store(*reader.values[i], type.dtype, out.bytes() + i * width);
  }
  return std::move(out).finish();
}

// ---------------------------------------------------------------------------------------- reading
const Type& Array::type() const { return *ArrayAccess::data(*this).type; }

std::int64_t Array::shape(std::int64_t axis) const {
  return shape()[static_cast<std::size_t>(canonical_axis("shape", axis, ndim()))];
}

void Array::copy_to(void* out, std::int64_t count, Dtype as, Location at) const {
  const AtUser scope(at);
  if (count == 1 && size() != 1) {
    fail<TypeError>("item: one element is needed, got ", type());
  }
  const Array value = concrete(*this, count == 1 ? "item" : "to_vector");
  const ArrayData& d = content(value);
  if (count == 0) return;  // an empty result may have no address
  if (d.type->dtype == as) {
    std::memcpy(out, d.elements, d.type->nbytes());
    return;
  }
  visit_dtype(d.type->dtype, [&](auto from) {
    visit_dtype(as, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const From* in = elements<From>(value);
      To* dst = static_cast<To*>(out);
      for (std::int64_t i = 0; i < count; ++i) dst[i] = cast_element<To>(in[i]);
    });
  });
}

const void* Array::raw_data(Dtype expected, Location at) const {
  const AtUser scope(at);
  if (is_traced(*this)) {
    fail_with_hint<TraceError>("read the numbers outside the traced function, or use item<T>()",
                               "data: a traced value has no elements, got ", type());
  }
  if (dtype() != expected) {
    fail<TypeError>("data: the element type must match, got ", type(), " read as ", expected);
  }
  return content(*this).elements;
}

}  // namespace reprise
