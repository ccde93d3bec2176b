// Looking into a function while it runs, traced or not.
//
//   rp::debug::print("loss {} after {steps:d} steps", loss, rp::arg("steps", n));
#pragma once

#include "reprise/callable.h"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::debug {

// What to print, and where that is written.
struct Format {
  template <class T>
  requires std::is_convertible_v<const T&, std::string> Format(const T& t,
                                                               Location here = Location::current())
      : text(t), at(here) {}  // NOLINT: implicit by design
  std::string text;
  Location at;
};

namespace detail {
struct Printed {
  std::string name;  // empty: by position
  Array value;
};
template <class T>
Printed printed(const T& value) {
  return {"", Array(value)};
}
template <class T>
Printed printed(const NamedArg<T>& named) {
  return {named.name, Array(named.value)};
}
void print(const Format& format, std::vector<Printed> args);
}  // namespace detail

// Writes a line to standard output each time that it is evaluated: inside jit when the compiled
// program gets there, in a loop at every step, under vmap once for each element, and in a
// checkpointed function once more when the backward pass plays it again. {} takes the next
// argument, {name} the one given as rp::arg("name", x), {:.3f} says how a scalar is written; {{ is
// a brace.
template <class... A>
void print(const Format& format, const A&... args) {
  detail::print(format, {detail::printed(args)...});
}

}  // namespace reprise::debug
#pragma GCC visibility pop
