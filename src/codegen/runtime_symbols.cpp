#include "codegen/runtime_symbols.h"

#include "ops/erf_inv.h"
#include "reprise/errors.h"

#include <dlfcn.h>

#include <cmath>

namespace reprise::codegen {
namespace {

using Symbols = std::vector<std::pair<std::string, void*>>;

template <class T>
using Unary = T (*)(T);
template <class T>
using Binary = T (*)(T, T);

// ------------------------------------------------------------------------------------ lane by lane
template <class T, Unary<T> f>
void lanes(const T* x, T* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
template <class T, Binary<T> f>
void lanes(const T* a, const T* b, T* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
template <class T, Unary<T> f>
void* unary() {
  return reinterpret_cast<void*>(static_cast<void (*)(const T*, T*, std::int64_t)>(lanes<T, f>));
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

struct LaneFunction {
  const char* name;
  void* address;
};
template <class T>
std::vector<LaneFunction> lane_functions() {  // of floating numbers
  return {{"exp", unary<T, std::exp>()},        {"exp2", unary<T, std::exp2>()},
          {"log", unary<T, std::log>()},        {"log1p", unary<T, std::log1p>()},
          {"expm1", unary<T, std::expm1>()},    {"sin", unary<T, std::sin>()},
          {"cos", unary<T, std::cos>()},        {"tan", unary<T, std::tan>()},
          {"asin", unary<T, std::asin>()},      {"acos", unary<T, std::acos>()},
          {"atan", unary<T, std::atan>()},      {"sinh", unary<T, std::sinh>()},
          {"cosh", unary<T, std::cosh>()},      {"tanh", unary<T, std::tanh>()},
          {"asinh", unary<T, std::asinh>()},    {"acosh", unary<T, std::acosh>()},
          {"atanh", unary<T, std::atanh>()},    {"cbrt", unary<T, std::cbrt>()},
          {"erf", unary<T, std::erf>()},        {"erfc", unary<T, std::erfc>()},
          {"erf_inv", unary<T, inverse_erf>()}, {"pow", binary<T, std::pow>()},
          {"atan2", binary<T, std::atan2>()},   {"fmod", binary<T, std::fmod>()}};
}

template <class T>
void add_lane_functions(Symbols& all) {
  if constexpr (std::is_floating_point_v<T>) {
    for (const auto& [name, address] : lane_functions<T>()) {
      all.emplace_back(lane_symbol(name, dtype_of<T>()), address);
    }
  } else {
    all.emplace_back(lane_symbol("pow", dtype_of<T>()), binary<T, integer_power<T>>());
  }
}

// ---------------------------------------------------------------------------------------- libmvec
struct VectorFunction {
  const char* name;
  std::size_t arity = 1;
};
constexpr VectorFunction vector_functions[] = {
    {"exp"},   {"exp2"}, {"log"},  {"log1p"}, {"expm1"},  {"sin"},     {"cos"},   {"tan"},
    {"asin"},  {"acos"}, {"atan"}, {"sinh"},  {"cosh"},   {"tanh"},    {"asinh"}, {"acosh"},
    {"atanh"}, {"cbrt"}, {"erf"},  {"erfc"},  {"pow", 2}, {"atan2", 2}};

// Its vectors have one size on arm64, and every set of instructions has its own on x86-64.
#if defined(__aarch64__)
constexpr unsigned libmvec_bytes[] = {16};
#else
constexpr unsigned libmvec_bytes[] = {16, 32, 64};
#endif

// Empty unless all are there.
Symbols libmvec_symbols() {
  Symbols all;
  void* const library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);  // kept for the process
  if (library == nullptr) return all;
  for (const VectorFunction& f : vector_functions) {
    for (Dtype d : {Dtype::f32, Dtype::f64}) {
      for (unsigned bytes : libmvec_bytes) {
        std::string name = libmvec_symbol(f.name, d, f.arity, bytes);
        void* const address = dlsym(library, name.c_str());
        if (address == nullptr) return {};
        all.emplace_back(std::move(name), address);
      }
    }
  }
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
