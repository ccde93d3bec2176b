// The program: what JAX calls a jaxpr.
//
//   program ::= { lambda consts ; inputs . let eqn* in outputs }
//   eqn     ::= out:type* = primitive[params] atom*
//   atom    ::= variable | literal
//
// Semantics, once for all passes: equations are pure and run in order; a variable is bound exactly
// once, before its first use; literals are scalars; arithmetic follows IEEE without contraction and
// without reassociation. A finished program never changes and is shared.
#pragma once

#include "array/access.h"
#include "base/location.h"
#include "program/params.h"

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

namespace reprise {

struct Primitive;

struct Atom {
  Var var = -1;
  Literal literal;  // when var < 0
  bool is_var() const { return var >= 0; }
  static Atom of(Var v) { return Atom{v, {}}; }
  static Atom of(const Literal& l) { return Atom{-1, l}; }
  bool operator==(const Atom&) const = default;
};

struct Equation {
  const Primitive* prim = nullptr;
  Params params;
  std::vector<Atom> in;
  std::vector<Var> out;
  Location at;
  Phase phase = Phase::forward;
};

// Programs derived from one program (its jvp, its transpose, ...), kept so that deriving twice
// gives the same object. Copies of a program start with none.
class DerivedPrograms {
 public:
  DerivedPrograms() = default;
  DerivedPrograms(const DerivedPrograms&) {}
  DerivedPrograms& operator=(const DerivedPrograms&) { return *this; }
  struct Key {
    std::type_index type;  // of what was derived
    bool is_inner;         // made inside another derivation
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  std::shared_ptr<const void> find(const Key& key) const;  // of the key's type; null when absent
  std::shared_ptr<const void> insert(Key key, std::shared_ptr<const void>) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<Key, std::shared_ptr<const void>> made_;
};

struct Program {
  std::vector<Type> types;  // of every variable
  std::vector<Var> in;      // constants first, then arguments
  std::size_t num_consts = 0;
  std::vector<Equation> eqns;
  std::vector<Atom> out;
  std::string name;                    // of the traced function, for messages
  std::vector<std::string> arg_names;  // paths of the arguments ("params[0]"), may be empty
  DerivedPrograms derived;

  Var fresh(Type t) {
    types.push_back(std::move(t));
    return static_cast<Var>(types.size()) - 1;
  }
  const Type& type(Var v) const { return types[static_cast<std::size_t>(v)]; }
  Type type(const Atom& a) const { return a.is_var() ? type(a.var) : a.literal.type(); }
  std::vector<Type> in_types() const;
  std::vector<Type> out_types() const;
};

// True while a derived program is being made. JAX does not share what it derives inside another
// derivation with what it derives outside, and neither do we: sharing shows in printed programs.
bool in_derivation();
class InDerivation {
 public:
  InDerivation();
  ~InDerivation();
  InDerivation(const InDerivation&) = delete;
  InDerivation& operator=(const InDerivation&) = delete;

 private:
  bool outer_;
};

// Runs `make` once per (program, T, name) and shares the result. A result that closes over traced
// values (member `consts`) belongs to their trace and is not kept.
template <class T, class Make>
std::shared_ptr<const T> derive(const Program& p, const std::string& name, const Make& make) {
  const DerivedPrograms::Key key{typeid(T), in_derivation(), name};
  if (auto found = p.derived.find(key)) return std::static_pointer_cast<const T>(found);
  const auto made = [&] {
    const InDerivation inside;
    return std::make_shared<const T>(make());
  }();
  if constexpr (requires { made->consts; }) {
    for (const Array& c : made->consts) {
      if (is_traced(c)) return made;
    }
  }
  return std::static_pointer_cast<const T>(p.derived.insert(key, made));
}
std::string mask_key(std::string_view name, const std::vector<bool>& mask);  // "jvp:0110"

// The same program as the body of a call: its constants become ordinary leading inputs.
ProgramPtr as_body(const ProgramPtr&);

// The one program for this identity ("scan:<function>", "jit:relu") and structure, so that two uses
// of one function share an object. Programs nobody holds any more are forgotten.
ProgramPtr intern(const std::string& identity, ProgramPtr);

bool same_structure(const Program& a, const Program& b);  // equal up to names of variables

}  // namespace reprise
