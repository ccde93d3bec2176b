#include "codegen/runtime_symbols.h"

#include "ops/records.h"
#include "reprise/errors.h"

#include <dlfcn.h>

#include <cmath>
#include <unordered_set>

namespace reprise::codegen {
namespace {

using Symbols = std::vector<std::pair<std::string, void*>>;

template <class T>
using Unary = T (*)(T);
template <class T>
using Binary = T (*)(T, T);

// ------------------------------------------------------------------------------------ lane by lane
template <class T, Binary<T> f>
void lanes(const T* a, const T* b, T* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
template <class T, Binary<T> f>
void* binary() {
  return reinterpret_cast<void*>(
      static_cast<void (*)(const T*, const T*, T*, std::int64_t)>(lanes<T, f>));
}

// Repeated squaring, wrapping; a negative exponent gives the truncated quotient.
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == T(-1)) return static_cast<T>(exponent % 2 == 0 ? 1 : -1);
      return 0;
    }
  }
  std::uint64_t result = 1, square = static_cast<std::uint64_t>(base);
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <class T>
void add_lane_functions(Symbols& all) {
  const auto add = [&](const char* name, void* address) {
    all.emplace_back(lane_symbol(name, dtype_of<T>()), address);
  };
  if constexpr (std::is_floating_point_v<T>) {
    for (const Primitive* p : basic_primitives()) {
      if (p->lanes == nullptr) continue;
      if constexpr (std::is_same_v<T, float>)
        add(p->name, reinterpret_cast<void*>(p->lanes->f32));
      else
        add(p->name, reinterpret_cast<void*>(p->lanes->f64));
    }
    add("pow", binary<T, std::pow>());
    add("atan2", binary<T, std::atan2>());
    add("fmod", binary<T, std::fmod>());
  } else {
    add("pow", binary<T, integer_power<T>>());
  }
}

// ---------------------------------------------------------------------------------------- libmvec
// Its vectors have one size on arm64, and every set of instructions has its own on x86-64.
#if defined(__aarch64__)
constexpr unsigned libmvec_bytes[] = {16};
#else
constexpr unsigned libmvec_bytes[] = {16, 32, 64};
#endif

// Of every function that a record or a rule may call, those that are there.
Symbols libmvec_symbols() {
  Symbols all;
  void* const library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);  // kept for the process
  if (library == nullptr) return all;
  const auto add = [&](const char* function, std::size_t arity) {
    for (Dtype d : {Dtype::f32, Dtype::f64}) {
      for (unsigned bytes : libmvec_bytes) {
        std::string name = libmvec_symbol(function, d, arity, bytes);
        if (void* const address = dlsym(library, name.c_str())) all.emplace_back(name, address);
      }
    }
  };
  for (const Primitive* p : basic_primitives()) {
    if (p->lanes != nullptr) add(p->name, 1);
  }
  add("pow", 2);
  add("atan2", 2);
  return all;
}
const Symbols& libmvec() {
  static const Symbols& all = *new const Symbols(libmvec_symbols());
  return all;
}

// What instructions without a machine instruction become.
void add_compiler_functions(Symbols& all) {
  using F1 = Unary<float>;
  using D1 = Unary<double>;
  const auto add = [&](const char* name, auto f) {
    all.emplace_back(name, reinterpret_cast<void*>(f));
  };
  add("floorf", static_cast<F1>(std::floor)), add("floor", static_cast<D1>(std::floor));
  add("ceilf", static_cast<F1>(std::ceil)), add("ceil", static_cast<D1>(std::ceil));
  add("roundf", static_cast<F1>(std::round)), add("round", static_cast<D1>(std::round));
  add("nearbyintf", static_cast<F1>(std::nearbyint));
  add("nearbyint", static_cast<D1>(std::nearbyint));
}

}  // namespace

bool has_libmvec() { return !libmvec().empty(); }

bool is_in_libmvec(const std::string& symbol) {
  static const auto& names = *[] {
    auto& all = *new std::unordered_set<std::string>;
    for (const auto& [name, address] : libmvec()) all.insert(name);
    return &all;
  }();
  return names.contains(symbol);
}

std::string libmvec_symbol(std::string_view function, Dtype d, std::size_t arity,
                           unsigned vector_bytes) {
#if defined(__aarch64__)
  constexpr char isa = 'n';
#else
  const char isa = vector_bytes == 64 ? 'e' : vector_bytes == 32 ? 'd' : 'b';
#endif
  std::string name = str("_ZGV", isa, "N", vector_bytes / itemsize(d), arity == 2 ? "vv_" : "v_");
  name += function;
  if (d == Dtype::f32) name += 'f';
  return name;
}

std::string lane_symbol(std::string_view function, Dtype d) {
  return str("reprise_lanes_", function, "_", short_name(d));
}

const std::vector<std::pair<std::string, void*>>& runtime_symbols() {
  static const Symbols& symbols = *[] {
    auto& all = *new Symbols(libmvec());
    add_lane_functions<float>(all);
    add_lane_functions<double>(all);
    add_lane_functions<std::int8_t>(all);
    add_lane_functions<std::int16_t>(all);
    add_lane_functions<std::int32_t>(all);
    add_lane_functions<std::int64_t>(all);
    add_lane_functions<std::uint8_t>(all);
    add_lane_functions<std::uint16_t>(all);
    add_lane_functions<std::uint32_t>(all);
    add_lane_functions<std::uint64_t>(all);
    add_compiler_functions(all);
    return &all;
  }();
  return symbols;
}

}  // namespace reprise::codegen
