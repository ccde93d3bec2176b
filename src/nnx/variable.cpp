#include "reprise/nnx/variable.h"

#include "reprise/errors.h"
#include "reprise/nnx/fields.h"
#include "reprise/program.h"

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>

namespace reprise::nnx {

bool Kind::is(const Kind& other) const {
  for (const Kind* k = this; k != nullptr; k = k->parent) {
    if (k == &other) return true;
  }
  return false;
}

namespace detail {

std::uint64_t next_static_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

// "reprise::nnx::List<app::Block>" -> "List<Block>"
std::string type_name(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  const std::string full = status == 0 ? text : type.name();
  std::free(text);
  std::string name, word;
  int parentheses = 0;  // of "(anonymous namespace)" and of function types
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (c == '(') ++parentheses;
    if (c == ')') --parentheses;
    if (c == ':' && i + 1 < full.size() && full[i + 1] == ':' && parentheses == 0) {
      word.clear();
      ++i;
    } else if (parentheses == 0 && (c == '<' || c == '>' || c == ',' || c == ' ')) {
      name += word + c;
      word.clear();
    } else {
      word += c;
    }
  }
  return name + word;
}

}  // namespace detail

Variable::Variable(const Kind& kind, Array value, std::string tag)
    : box_(std::make_shared<detail::Box>(detail::Box{std::move(value), &kind, std::move(tag),
                                                     reprise::detail::current_trace()})) {}

const Array& Variable::get_value(Location at) const {
  const AtUser scope(at);
  if (!box_) fail<TypeError>("variable: it was never given a value");
  if (!box_->value.defined())
    fail<TypeError>("variable: a ", box_->kind->name, " without a value was read");
  return box_->value;
}

void Variable::set_value(const Array& value, Location at) const {
  const AtUser scope(at);
  if (!box_) fail<TypeError>("variable: it was never given a value");
  if (box_->trace != reprise::detail::current_trace()) {
    fail_with_hint<TraceError>(
        "pass the variable, or the module that holds it, to the transformed function as an "
        "argument",
        "variable: a ", box_->kind->name,
        " cannot be changed from another trace level than its own, got a ",
        box_->value.defined() ? to_string(box_->value.type())
                              : std::string("variable without a value"),
        " made outside of the function that is being traced");
  }
  box_->value = value;
}

const Variable& Variable::operator+=(Operand x) const {
  set_value(add(Operand(get_value(x.at), x.at), x), x.at);
  return *this;
}
const Variable& Variable::operator-=(Operand x) const {
  set_value(subtract(Operand(get_value(x.at), x.at), x), x.at);
  return *this;
}
const Variable& Variable::operator*=(Operand x) const {
  set_value(multiply(Operand(get_value(x.at), x.at), x), x.at);
  return *this;
}
const Variable& Variable::operator/=(Operand x) const {
  set_value(divide(Operand(get_value(x.at), x.at), x), x.at);
  return *this;
}

const Kind& Variable::kind() const { return box_ ? *box_->kind : kind_of<Variable>(); }
const std::string& Variable::tag() const {
  static const auto& none = *new const std::string;
  return box_ ? box_->tag : none;
}

}  // namespace reprise::nnx
