#include "api/flat.h"

#include "program/recent.h"
#include "reprise/jit.h"

#include <atomic>
#include <limits>

namespace reprise {

Types leaf_types(const Arrays& xs) {
  Types types;
  types.reserve(xs.size());
  for (const Array& x : xs) types.push_back(x.type());
  return types;
}

std::string detail::new_identity() {
  static std::atomic<std::uint64_t> serial{0};
  return str("w", ++serial);
}

Traced trace_callee(const detail::Callee& f, const char* transform, const Types& in,
                    const Arrays* values) {
  Traced t = trace(
      f.run, in,
      {.transform = transform, .name = f.name, .arg_names = f.arg_names, .concrete_args = values});
  if (!is_tracing()) t.program = recent(std::move(t.program));
  return t;
}

Array finished(const Array& a) {
  if (!content(a).number() || is_tracing()) return a;
  return with_type(a, a.type());
}
Arrays finished(Arrays xs) {
  for (Array& x : xs) x = finished(x);
  return xs;
}

void check_leaf_count(std::size_t wanted, std::size_t got) {
  if (wanted != got) {
    fail<TypeError>("tree_unflatten: the number of leaves must match, got ", got, " for ", wanted);
  }
}

namespace tree {
void append_bits(std::string& key, const long double& value) {
  constexpr std::size_t bytes = std::numeric_limits<long double>::digits == 64 ? 10 : sizeof value;
  key.append(reinterpret_cast<const char*>(&value), bytes);
}
void append_text(std::string& key, std::string_view text) {
  append_bits(key, text.size());
  key += text;
}
void append_text(std::string& key, const char* text) {
  append_bits(key, text != nullptr);
  if (text != nullptr) append_text(key, std::string_view(text));
}
void append_value(std::string& key, const Array& a) {
  detail::append_types(key, {a});
  const bool traced = is_traced(a);
  append_bits(key, traced);
  if (traced) return append_bits(key, identity(a));
  key.append(reinterpret_cast<const char*>(elements<std::byte>(a)), a.nbytes());
}

std::vector<std::string> split_names(const char* list) {
  std::vector<std::string> names(1);
  for (const char* c = list; *c != '\0'; ++c) {
    if (*c == ',') {
      names.emplace_back();
    } else if (*c != ' ' && *c != '\n') {
      names.back() += *c;
    }
  }
  return names;
}
}  // namespace tree

}  // namespace reprise
