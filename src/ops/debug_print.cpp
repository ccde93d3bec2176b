#include "ops/debug_print.h"

#include "base/dtype.h"
#include "ops/lax.h"
#include "ops/records.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <mutex>

namespace reprise {
namespace {

// ----------------------------------------------------------------------------------------- format
struct Piece {
  std::string text;  // as it is, if there is no operand
  std::optional<std::size_t> operand = {};
  std::string spec = {};  // what stands behind the colon
};

// The names of operands, empty ones first, from what JAX prints: PyTreeDef(((*, *), {'z': *})).
std::vector<std::string> operand_names(const std::string& in_tree) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < in_tree.size(); ++at) {
    if (in_tree[at] == '*') names.emplace_back();
    if (in_tree[at] != '\'') continue;
    const std::size_t end = std::min(in_tree.find('\'', at + 1), in_tree.size());
    names.push_back(in_tree.substr(at + 1, end - at - 1));
    at = in_tree.find('*', end);  // of this name
    if (at == std::string::npos) break;
  }
  return names;
}

class Format {
 public:
  Format(const std::string& fmt, const std::vector<std::string>& names)
      : fmt_(fmt), names_(names), is_used_(names.size()) {
    std::string text;
    for (std::size_t at = 0; at < fmt.size(); ++at) {
      const bool is_doubled = at + 1 < fmt.size() && fmt[at + 1] == fmt[at];
      if ((fmt[at] != '{' && fmt[at] != '}') || is_doubled) {
        text += fmt[at];
        at += fmt[at] == '{' || fmt[at] == '}' ? 1 : 0;
        continue;
      }
      const std::size_t end = fmt.find('}', at);
      if (fmt[at] == '}' || end == std::string::npos)
        broken("a brace stands alone (write {{ or }})");
      pieces_.push_back({std::exchange(text, {})});
      field(fmt.substr(at + 1, end - at - 1));
      at = end;
    }
    pieces_.push_back({text});
    const auto unused = std::find(is_used_.begin(), is_used_.end(), false);
    if (unused == is_used_.end()) return;
    const std::string& name = names_[static_cast<std::size_t>(unused - is_used_.begin())];
    broken(name.empty() ? "an argument is not printed"
                        : "the argument `" + name + "` is not printed");
  }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  [[noreturn]] void broken(const std::string& what) const {
    fail<TypeError>("debug::print: ", what, ", got \"", fmt_, "\"");
  }

  void field(const std::string& inside) {
    const std::size_t colon = std::min(inside.find(':'), inside.size());
    const std::string name = inside.substr(0, colon);
    std::size_t number = next_;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (name.empty() || (code == std::errc() && end == name.data() + name.size())) {
      next_ = number + 1;
      if (number >= names_.size() || !names_[number].empty())
        broken(str("there is no argument number ", number));
    } else {
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found == names_.end())
        broken("there is no argument `" + name + "` (name it with rp::arg)");
      number = static_cast<std::size_t>(found - names_.begin());
    }
    is_used_[number] = true;
    pieces_.push_back({"", number, colon == inside.size() ? "" : inside.substr(colon + 1)});
  }

  const std::string& fmt_;
  const std::vector<std::string>& names_;
  std::vector<Piece> pieces_;
  std::vector<bool> is_used_;
  std::size_t next_ = 0;  // the argument of the next {}
};

// [width][.precision][d, e, f or g]
bool is_number_spec(const std::string& spec, bool may_be_integer) {
  if (spec.size() > 8) return false;  // numbers of a screen's width
  const std::size_t digits = spec.find_first_not_of("0123456789");
  if (digits == std::string::npos) return !spec.empty();
  std::size_t at = digits;
  if (spec[at] == '.') {
    at = std::min(spec.find_first_not_of("0123456789", at + 1), spec.size());
    if (at == digits + 1) return false;
  }
  if (at == spec.size()) return true;
  return at + 1 == spec.size() &&
         (spec[at] == 'd' ? may_be_integer && at == digits
                          : std::string_view("efg").find(spec[at]) != std::string_view::npos);
}

std::string formatted(const Array& x, const std::string& spec) {
  if (spec.empty()) return to_string(x);
  const bool has_type = std::isalpha(static_cast<unsigned char>(spec.back())) != 0;
  const char type = has_type                                                       ? spec.back()
                    : is_integer(x.dtype()) && spec.find('.') == std::string::npos ? 'd'
                                                                                   : 'g';
  const std::string modifiers = "%" + (has_type ? spec.substr(0, spec.size() - 1) : spec);
  // a double has at most 309 digits before the point, is_number_spec limits what is behind
  char text[512];
  if (type == 'd') {
    std::snprintf(text, sizeof text, (modifiers + "lld").c_str(),
                  static_cast<long long>(x.item<std::int64_t>()));
  } else {
    std::snprintf(text, sizeof text, (modifiers + type).c_str(), x.item<double>());
  }
  return text;
}

// ------------------------------------------------------------------------------------------ rules
Types print_type(const Types& in, const Params& params) {
  const std::vector<std::string> names = operand_names(params.get<std::string>("in_tree"));
  const std::string& fmt = params.get<std::string>("fmt");
  if (names.size() != in.size())
    fail<TypeError>("debug_print: one operand for each argument is needed, got ", in.size(),
                    " for ", names.size());
  const Format format(fmt, names);
  for (const Piece& p : format.pieces()) {
    if (p.spec.empty()) continue;
    const Type& t = in[*p.operand];
    if (t.ndim() == 0 && t.dtype != Dtype::key && is_number_spec(p.spec, is_integer(t.dtype)))
      continue;
    fail<TypeError>(
        "debug::print: behind a colon stands [width][.precision][d, e, f or g], for a scalar, got "
        "{:",
        p.spec, "} for ", t);
  }
  return {};
}

Arrays print_eval(const Arrays& x, const Params& params, const Types&) {
  const std::vector<std::string> names = operand_names(params.get<std::string>("in_tree"));
  std::string line;
  const Format format(params.get<std::string>("fmt"), names);
  for (const Piece& p : format.pieces())
    line += p.operand ? formatted(x[*p.operand], p.spec) : p.text;
  static std::mutex mutex;  // lines of several threads stay whole
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
  return {};
}

Tangents print_tangent(const Arrays&, const Tangents&, const Arrays&, const Params&) { return {}; }

// Once for each element, in their order.
Batched print_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  for (std::int64_t row = 0; row < n; ++row) {
    Arrays one;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!axes[i]) {
        one.push_back(x[i]);
        continue;
      }
      const auto axis = static_cast<std::size_t>(*axes[i]);
      lax::Ints begin(x[i].shape().size(), 0), end = x[i].shape();
      begin[axis] = row;
      end[axis] = row + 1;
      const Array part = lax::slice(x[i], begin, end);
      one.push_back(lax::squeeze(part, {*axes[i]}));
    }
    self.bind(one, params);
  }
  return {};
}

// How JAX says what numpy is to do with arrays, which is what we do.
constexpr const char numpy_options[] =
    "(('edgeitems', 3), ('threshold', 1000), ('floatmode', 'maxprec'), ('precision', 8), "
    "('suppress', False), ('linewidth', 75), "
    "('nanstr', 'nan'), ('infstr', 'inf'), ('sign', '-'), ('formatter', None), ('legacy', False), "
    "('override_repr', None))";

std::vector<Param> print_printed(const Params& params) {
  return {{"fmt", params.get<std::string>("fmt")},
          {"has_placeholders", params.get<std::string>("in_tree").find('*') != std::string::npos},
          {"in_tree", params.get<std::string>("in_tree")},
          {"logging_record", None{}},
          {"np_printoptions", std::string(numpy_options)},
          {"ordered", false},
          {"partitioned", false},
          {"static_args", Ints{}}};
}

constexpr ParamRule print_rules[] = {{"fmt", form::text},
                                     {"has_placeholders", form::flag, unused},
                                     {"in_tree", form::text},
                                     {"logging_record", form::none, unused},
                                     {"np_printoptions", form::text, unused},
                                     {"ordered", form::flag, unused},
                                     {"partitioned", form::flag, unused},
                                     {"static_args", form::ints, unused}};

}  // namespace

constinit const Primitive debug_print_p{
    .name = "debug_print",
    .kind = Kind::effect,
    .type = print_type,
    .eval = print_eval,
    .tangent = print_tangent,
    .batch = print_batch,
    .printed_params = print_printed,
    .param_rules = print_rules,
    .effect = {.is_ordered = true, .is_distinct = true, .is_kept = true},
    .types_varying = true};

Params debug_print_params(std::string fmt, std::size_t positions,
                          const std::vector<std::string>& names) {
  std::vector<std::string> stars(positions, "*"), named;
  for (const std::string& name : names) named.push_back("'" + name + "': *");
  const std::string tuple = join(stars, ", ") + (positions == 1 ? "," : "");
  return {{"fmt", std::move(fmt)},
          {"in_tree", str("PyTreeDef(((", tuple, "), {", join(named, ", "), "}))")}};
}

}  // namespace reprise
