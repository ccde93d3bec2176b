// Variables: named boxes that hold the arrays of a model, in kinds that filters tell apart.
//
//   nnx::Param w(rp::zeros({4}));            // a box; copies of w are the same box
//   Array y = rp::exp(w);                    // reads like the array inside
//   w.set_value(y);                          // what every holder of the box sees
//   struct LossScale : nnx::VariableKind<LossScale> { using VariableKind::VariableKind; };  // new
#pragma once

#include "reprise/ops.h"

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// A kind of variable: its name, and the kind that it is a special case of.
struct Kind {
  std::string name;                  // "Param"
  const Kind* parent = nullptr;      // none: Variable itself
  bool is(const Kind& other) const;  // the other one or a special case of it
};

namespace detail {
struct Box {
  Array value;
  const Kind* kind = nullptr;
  std::string tag;          // the stream of random state; else empty
  std::uint64_t trace = 0;  // the trace in which it may be changed
};
struct Inspection;  // how make_jaxpr and the like take variables and modules (inspect.h)
std::string type_name(const std::type_info&);  // without namespaces: "Linear", "List<Linear>"
}  // namespace detail

class Variable;
// The kind of a type of variables.
template <class V>
const Kind& kind_of() {
  if constexpr (std::is_same_v<V, Variable>) {
    static const Kind& kind = *new const Kind{"Variable", nullptr};
    return kind;
  } else {
    static_assert(std::is_same_v<typename V::reprise_kind, V>,
                  "a kind of variable derives from nnx::VariableKind<itself>");
    static const Kind& kind =
        *new const Kind{detail::type_name(typeid(V)), &kind_of<typename V::reprise_parent>()};
    return kind;
  }
}

class Variable {
 public:
  using reprise_kind = Variable;
  using reprise_inspection = detail::Inspection;
  Variable() = default;  // holds nothing: assign before use
  explicit Variable(Array value) : Variable(kind_of<Variable>(), std::move(value)) {}
  explicit Variable(std::shared_ptr<detail::Box> box) : box_(std::move(box)) {}

  // The array inside. Inside a transform this is the traced value.
  const Array& get_value(Location at = Location::current()) const;
  // Changes it for all holders. A TraceError inside a transform that was not given this variable
  // (or a module that holds it) as an argument.
  void set_value(const Array& value, Location at = Location::current()) const;
  operator const Array&() const { return get_value(Location{}); }                  // NOLINT
  operator Operand() const { return Operand(get_value(Location{}), Location{}); }  // NOLINT
  Array operator[](const Index& i) const { return get_value(Location{})[i]; }
  const Variable& operator+=(Operand x) const;
  const Variable& operator-=(Operand x) const;
  const Variable& operator*=(Operand x) const;
  const Variable& operator/=(Operand x) const;

  const Type& type() const { return get_value().type(); }
  const Shape& shape() const { return get_value().shape(); }
  Dtype dtype() const { return get_value().dtype(); }
  const Kind& kind() const;
  const std::string& tag() const;
  bool defined() const { return box_ != nullptr; }
  bool same_as(const Variable& other) const { return box_ == other.box_; }  // one box

  const std::shared_ptr<detail::Box>& box() const { return box_; }
  void rebind(std::shared_ptr<detail::Box> box) { box_ = std::move(box); }

 protected:
  Variable(const Kind& kind, Array value, std::string tag = {});

 private:
  std::shared_ptr<detail::Box> box_;
};
std::ostream& operator<<(std::ostream&, const Variable&);  // Param( # 4 (16 B) ... )
std::string to_string(const Variable&);

// The base of a kind of variable:
//   struct Mine : nnx::VariableKind<Mine> { using VariableKind::VariableKind; };
template <class Self, class Parent = Variable>
class VariableKind : public Parent {
 public:
  using reprise_kind = Self;
  using reprise_parent = Parent;
  VariableKind() = default;
  explicit VariableKind(Array value) : Parent(kind_of<Self>(), std::move(value)) {}
  VariableKind(Array value, std::string tag)
      : Parent(kind_of<Self>(), std::move(value), std::move(tag)) {}

 protected:
  VariableKind(const Kind& kind, Array value, std::string tag = {})
      : Parent(kind, std::move(value), std::move(tag)) {}
};

struct Param : VariableKind<Param> {
  using VariableKind::VariableKind;
};  // learned
struct BatchStat : VariableKind<BatchStat> {
  using VariableKind::VariableKind;
};  // running statistics
struct Cache : VariableKind<Cache> {
  using VariableKind::VariableKind;
};  // of attention, while decoding
struct Intermediate : VariableKind<Intermediate> {
  using VariableKind::VariableKind;
};  // from Module::sow
struct Perturbation : VariableKind<Perturbation> {
  using VariableKind::VariableKind;
};
struct RngState : VariableKind<RngState> {
  using VariableKind::VariableKind;
};
struct RngKey : VariableKind<RngKey, RngState> {
  using VariableKind::VariableKind;
};
struct RngCount : VariableKind<RngCount, RngState> {
  using VariableKind::VariableKind;
};
struct OptState : VariableKind<OptState> {
  using VariableKind::VariableKind;
};  // of an optimiser
struct OptArray : VariableKind<OptArray, OptState> {
  using VariableKind::VariableKind;
};
struct OptVariable : VariableKind<OptVariable, OptState> {
  using VariableKind::VariableKind;
};

// Arithmetic of two variables, as of arrays.
using reprise::operator+;
using reprise::operator-;
using reprise::operator*;
using reprise::operator/;
using reprise::operator<;
using reprise::operator<=;
using reprise::operator>;
using reprise::operator>=;

}  // namespace reprise::nnx
#pragma GCC visibility pop
