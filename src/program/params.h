// The static parameters of an equation: a short list of (name, value), printed as JAX prints them.
#pragma once

#include "base/error.h"
#include "reprise/array.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace reprise {

struct Program;
using ProgramPtr = std::shared_ptr<const Program>;
using Programs = std::vector<ProgramPtr>;
using Ints = std::vector<std::int64_t>;

// ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
struct DotDims {
  Ints lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
  bool operator==(const DotDims&) const = default;
};

// A value with structure or behaviour of its own: dimension numbers, policies, custom rules.
class OpaqueParam {
 public:
  virtual ~OpaqueParam() = default;
  virtual std::string text() const = 0;
  // Same dynamic type, same meaning. The default: the same text (right for plain values).
  virtual bool equal(const OpaqueParam& other) const { return text() == other.text(); }
};
using OpaquePtr = std::shared_ptr<const OpaqueParam>;

using Attr = std::variant<None, bool, std::int64_t, double, std::string, Dtype, Ints,
                          std::vector<Ints>, DotDims, ProgramPtr, Programs, OpaquePtr>;

struct Param {
  const char* key;  // a literal
  Attr value;
};

// Which alternatives of Attr a value may be: a set of bits, one per alternative in its order.
using Forms = unsigned;
namespace form {
inline constexpr Forms none = 1u << 0, flag = 1u << 1, integer = 1u << 2, real = 1u << 3,
                       text = 1u << 4, dtype = 1u << 5, ints = 1u << 6, rows = 1u << 7,
                       dims = 1u << 8, program = 1u << 9, programs = 1u << 10, object = 1u << 11;
}
// a program or object that is null is no value, nor are no programs
bool holds(Forms, const Attr&);
std::string forms_text(Forms);  // "None or a tuple of integers"

// What every equation of a primitive says about one of its params.
struct ParamRule {
  const char* key;
  Forms forms;
  // What a text means that does not say it; null: it must say it.
  const char* otherwise = nullptr;
};
// For `otherwise`. absent: then the equation does not have it either. completed: then the
// primitive's `parsed_params` finds it. unused: what some versions of JAX say and nothing here
// depends on; it is read and forgotten.
inline constexpr const char absent[] = "(absent)", completed[] = "(completed)",
                            unused[] = "(unused)";

// A param of any equation that is never printed: how many of its integers JAX holds as numpy
// scalars. JAX prints those as np.int64(n); we print n, but break lines where JAX does.
inline constexpr const char* numpy_ints = "numpy_ints";

// Copies share the list: every transform copies equations.
class Params {
 public:
  Params() = default;
  Params(std::initializer_list<Param> items)
      : items_(std::make_shared<const std::vector<Param>>(items)) {}

  template <class T>
  const T& get(std::string_view key) const {
    const T* value = std::get_if<T>(find(key));
    REPRISE_INVARIANT(value != nullptr);
    return *value;
  }
  template <class T>
  std::shared_ptr<const T> get_opaque(std::string_view key) const {
    auto value = std::dynamic_pointer_cast<const T>(get<OpaquePtr>(key));
    REPRISE_INVARIANT(value != nullptr);
    return value;
  }
  const Attr* find(std::string_view key) const;    // null when absent
  Params with(const char* key, Attr value) const;  // replaces or appends
  const std::vector<Param>& items() const;
  bool empty() const { return items().empty(); }
  bool operator==(const Params& other) const;

 private:
  std::shared_ptr<const std::vector<Param>> items_;  // null: none
};

bool operator==(const Param&, const Param&);
std::size_t hash_of(const Params&);    // equal params have equal hashes
std::string python_text(const Attr&);  // not for programs
std::optional<std::vector<bool>> parse_flags(std::string_view text);  // "(True, False)", "[True]"
std::string python_tuple(const Ints&);                                // "(1, 0)", "(0,)", "()"
// Calls f(const ProgramPtr&) for every program held by the params, in order.
template <class F>
void for_each_program(const Params& params, F&& f) {
  for (const Param& p : params.items()) {
    if (const auto* one = std::get_if<ProgramPtr>(&p.value)) f(*one);
    if (const auto* several = std::get_if<Programs>(&p.value)) {
      for (const ProgramPtr& program : *several) f(program);
    }
  }
}

}  // namespace reprise
