#include "program/params.h"

#include "array/number_text.h"
#include "base/dtype.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
#include <typeinfo>

namespace reprise {
namespace {

bool same(const OpaquePtr& a, const OpaquePtr& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  const OpaqueParam &x = *a, &y = *b;
  return typeid(x) == typeid(y) && x.equal(y);
}
std::size_t mix(std::size_t seed, std::size_t h) {
  return seed ^ (h + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}
std::size_t hash_ints(const Ints& v) {
  std::size_t h = v.size();
  for (std::int64_t i : v) h = mix(h, static_cast<std::size_t>(i));
  return h;
}

struct HashAttr {
  std::size_t operator()(const None&) const { return 1; }
  std::size_t operator()(bool v) const { return v ? 2 : 3; }
  std::size_t operator()(std::int64_t v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(double v) const {
    return std::hash<std::uint64_t>{}(std::bit_cast<std::uint64_t>(v));
  }
  std::size_t operator()(const std::string& v) const { return std::hash<std::string>{}(v); }
  std::size_t operator()(Dtype v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(const Ints& v) const { return hash_ints(v); }
  std::size_t operator()(const std::vector<Ints>& v) const {
    std::size_t h = v.size();
    for (const Ints& i : v) h = mix(h, hash_ints(i));
    return h;
  }
  std::size_t operator()(const DotDims& v) const {
    return mix(mix(hash_ints(v.lhs_contracting), hash_ints(v.rhs_contracting)),
               mix(hash_ints(v.lhs_batch), hash_ints(v.rhs_batch)));
  }
  std::size_t operator()(const ProgramPtr& v) const { return std::hash<ProgramPtr>{}(v); }
  std::size_t operator()(const Programs& v) const {
    std::size_t h = v.size();
    for (const ProgramPtr& p : v) h = mix(h, std::hash<ProgramPtr>{}(p));
    return h;
  }
  std::size_t operator()(const OpaquePtr&) const { return 5; }  // equality may be by meaning
};

struct TextOf {
  std::string operator()(const None&) const { return "None"; }
  std::string operator()(bool v) const { return v ? "True" : "False"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return python_float(v); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(Dtype v) const { return std::string(long_name(v)); }
  std::string operator()(const Ints& v) const { return python_tuple(v); }
  std::string operator()(const std::vector<Ints>& v) const {
    std::vector<std::string> items;
    for (const Ints& i : v) items.push_back(python_tuple(i));
    return "(" + join(items, ", ") + (items.size() == 1 ? ",)" : ")");
  }
  std::string operator()(const DotDims& v) const {
    auto list = [](const Ints& i) { return "[" + join(i, ", ") + "]"; };
    return "((" + list(v.lhs_contracting) + ", " + list(v.rhs_contracting) + "), (" +
           list(v.lhs_batch) + ", " + list(v.rhs_batch) + "))";
  }
  std::string operator()(const ProgramPtr&) const { return "<program>"; }
  std::string operator()(const Programs&) const { return "<programs>"; }
  std::string operator()(const OpaquePtr& v) const { return v ? v->text() : "None"; }
};

}  // namespace

bool holds(Forms forms, const Attr& value) {
  if ((forms >> value.index() & 1u) == 0) return false;
  if (const auto* one = std::get_if<ProgramPtr>(&value)) return *one != nullptr;
  if (const auto* object = std::get_if<OpaquePtr>(&value)) return *object != nullptr;
  const auto* several = std::get_if<Programs>(&value);
  return several == nullptr || !several->empty();
}
std::string forms_text(Forms forms) {
  constexpr const char* names[] = {"None",
                                   "True or False",
                                   "an integer",
                                   "a number",
                                   "a text",
                                   "a dtype",
                                   "a tuple of integers",
                                   "a tuple of tuples of integers",
                                   "dimension numbers ((lhs, rhs), (lhs, rhs))",
                                   "a program",
                                   "a tuple of programs",
                                   "a text that is known here"};
  static_assert(std::size(names) == std::variant_size_v<Attr>);
  std::vector<std::string> allowed;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if ((forms >> i & 1u) != 0) allowed.emplace_back(names[i]);
  }
  return join(allowed, " or ");
}

std::optional<std::vector<bool>> parse_flags(std::string_view text) {
  const bool is_list = text.size() >= 2 && ((text.front() == '(' && text.back() == ')') ||
                                            (text.front() == '[' && text.back() == ']'));
  if (!is_list) return std::nullopt;
  std::vector<bool> flags;
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find_first_of(", \n"));
    if (word == "True" || word == "False")
      flags.push_back(word == "True");
    else if (!word.empty())
      return std::nullopt;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return flags;
}
std::string python_tuple(const Ints& v) { return to_string(Shape(v)); }
std::string python_text(const Attr& value) { return std::visit(TextOf{}, value); }

const std::vector<Param>& Params::items() const {
  static const auto& none = *new const std::vector<Param>;
  return items_ ? *items_ : none;
}

const Attr* Params::find(std::string_view key) const {
  for (const Param& p : items()) {
    if (key == p.key) return &p.value;
  }
  return nullptr;
}

Params Params::with(const char* key, Attr value) const {
  auto changed = std::make_shared<std::vector<Param>>(items());
  const auto old = std::find_if(changed->begin(), changed->end(),
                                [&](const Param& p) { return std::string_view(p.key) == key; });
  if (old != changed->end())
    old->value = std::move(value);
  else
    changed->push_back({key, std::move(value)});
  Params out;
  out.items_ = std::move(changed);
  return out;
}

bool operator==(const Param& a, const Param& b) {
  if (std::string_view(a.key) != b.key || a.value.index() != b.value.index()) return false;
  if (const auto* opaque = std::get_if<OpaquePtr>(&a.value)) {
    return same(*opaque, std::get<OpaquePtr>(b.value));
  }
  if (const auto* number = std::get_if<double>(&a.value)) {  // 0.0 and -0.0 are two numbers
    return std::bit_cast<std::uint64_t>(*number) ==
           std::bit_cast<std::uint64_t>(std::get<double>(b.value));
  }
  return a.value == b.value;
}
bool Params::operator==(const Params& other) const {
  return items_ == other.items_ || items() == other.items();
}

std::size_t hash_of(const Params& params) {
  std::size_t h = params.items().size();
  for (const Param& p : params.items()) h = mix(h, std::visit(HashAttr{}, p.value));
  return h;
}

}  // namespace reprise
