#include "program/parse.h"

#include "program/parse_tree.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

namespace reprise {
namespace {

template <class T>
bool read_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [read, code] = std::from_chars(text.data(), end, value);
  return code == std::errc() && read == end;
}

// False when the text is not a number of the type.
bool read_literal(std::string_view text, Literal& l) {
  if (l.dtype == Dtype::float0) return text == "(b'',)";
  if (l.dtype == Dtype::key) return false;
  if (l.dtype == Dtype::bool_) {
    l.integer = text == "True";
    return text == "True" || text == "False";
  }
  if (is_floating(l.dtype)) return read_number(text, l.real);
  const bool is_unsigned = l.dtype <= Dtype::u64;
  if (is_unsigned ? !read_number(text, l.natural) : !read_number(text, l.integer)) return false;
  std::byte element[8];
  store_literal(l, element);
  return load_literal(l.dtype, element).integer == l.integer;
}

// The variables of one program by name.
class Scope {
 public:
  // Unused results are all called `_`.
  bool bind_name(std::string_view name, Var v) {
    if (name == "_") unused_.push_back(v);
    return name == "_" || vars_.emplace(name, v).second;
  }
  const Var* find(std::string_view name) const {
    const auto it = vars_.find(name);
    return it == vars_.end() ? nullptr : &it->second;
  }
  const std::vector<Var>& unused() const { return unused_; }

 private:
  std::unordered_map<std::string_view, Var> vars_;
  std::vector<Var> unused_;
};

// The lines of a text by offset.
class Lines {
 public:
  explicit Lines(std::string_view text) {
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
      starts_.push_back(at + 1);
    }
  }
  Location place(const char* file, std::size_t at) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), at);
    return {file, "", static_cast<std::uint32_t>(after - starts_.begin()),
            static_cast<std::uint32_t>(at - *(after - 1) + 1)};
  }

 private:
  std::vector<std::size_t> starts_ = {0};
};

// Everything a text needs that is not here, in one error.
class Missing {
 public:
  Missing(std::string_view text, const Lines& lines) : text_(text), lines_(lines) {}
  void primitive(std::string_view name, std::size_t at) { add(primitives_, name, at); }
  void dtype(std::string_view name, std::size_t at) { add(dtypes_, name, at); }
  void report() const {
    std::vector<std::string> what;
    if (!primitives_.empty()) what.push_back("an unknown primitive, got " + list(primitives_));
    if (!dtypes_.empty()) what.push_back("a known dtype is expected, got " + list(dtypes_));
    if (!what.empty()) parse_error(text_, first_, join(what, "; "));
  }

 private:
  using Places = std::map<std::string_view, std::vector<std::uint32_t>>;
  void add(Places& places, std::string_view name, std::size_t at) {
    std::vector<std::uint32_t>& lines = places[name];
    const std::uint32_t line = lines_.place("", at).line;
    if (lines.empty() || lines.back() != line) lines.push_back(line);
    first_ = std::min(first_, at);
  }
  // With lines, if the place of the error is not all there is to say.
  std::string list(const Places& places) const {
    const bool is_single =
        primitives_.size() + dtypes_.size() == 1 && places.begin()->second.size() == 1;
    std::vector<std::string> items;
    for (const auto& [name, lines] : places) {
      const char* line = lines.size() == 1 ? " (line " : " (lines ";
      items.push_back(str("`", name, "`", is_single ? "" : str(line, join(lines, ", "), ")")));
    }
    return join(items, ", ");
  }

  std::string_view text_;
  const Lines& lines_;
  Places primitives_, dtypes_;
  std::size_t first_ = std::string_view::npos;
};

// What a param may say without changing anything: the values with which JAX adds new ones.
bool is_neutral(const ParsedParam& p) {
  if (p.is_program || p.is_program_tuple) return false;
  return p.text == "None" || p.text == "False" || p.text == "()" || p.text == "UnspecifiedValue";
}

class ProgramBuilder {
 public:
  ProgramBuilder(std::string_view text, std::span<const Primitive* const> primitives,
                 const char* file)
      : text_(text), file_(file), lines_(text), tree_(parse_tree(text)) {
    for (const Primitive* p : primitives) primitives_.emplace(p->name, p);
    for (const ParsedDefinition& d : tree_.definitions) {
      if (!definitions_.emplace(d.name, Definition{&d.program}).second) {
        parse_error(text_, d.program.at, str("a name is defined twice, got `", d.name, "`"));
      }
    }
    check_all_known();
  }

  Program build() {
    Program p = program(tree_.main, "");
    for (const auto& [name, definition] : definitions_) {
      if (!definition.built) {
        parse_error(text_, definition.parsed->at, str("nobody uses the program `", name, "`"));
      }
    }
    return p;
  }

 private:
  struct Definition {
    const ParsedProgram* parsed;
    ProgramPtr built = nullptr;
    bool in_progress = false;
  };

  void check_all_known() const {
    Missing missing(text_, lines_);
    for (const UnknownWord& dtype : tree_.unknown_dtypes) missing.dtype(dtype.name, dtype.at);
    for (const ParsedDefinition& d : tree_.definitions) find_missing(d.program, missing);
    find_missing(tree_.main, missing);
    missing.report();
  }
  void find_missing(const ParsedProgram& p, Missing& missing) const {
    for (const ParsedEquation& e : p.eqns) {
      if (!primitives_.contains(e.primitive)) missing.primitive(e.primitive, e.at);
      for (const ParsedParam& param : e.params) {
        for (const ParsedProgramUse& use : param.programs) {
          if (!use.body.empty()) find_missing(use.body[0], missing);
        }
      }
    }
  }

  Program program(const ParsedProgram& parsed, const std::string& name) {
    if (++depth_ > max_program_depth) {
      parse_error(text_, parsed.at, "the programs are nested too deeply");
    }
    Program p;
    Scope scope;
    p.name = name;
    p.num_consts = parsed.consts.size();
    for (const auto* inputs : {&parsed.consts, &parsed.args}) {
      for (const ParsedBinder& b : *inputs) p.in.push_back(bind_variable(p, scope, b, b.type));
    }
    p.eqns.reserve(parsed.eqns.size());
    for (const ParsedEquation& e : parsed.eqns) p.eqns.push_back(equation(p, scope, e));
    std::size_t unused = 0;
    for (const ParsedAtom& a : parsed.out) p.out.push_back(output(scope, a, unused));
    --depth_;
    return p;
  }

  Var bind_variable(Program& p, Scope& scope, const ParsedBinder& b, Type type) {
    const Var v = p.fresh(std::move(type));
    if (!scope.bind_name(b.name, v)) {
      parse_error(text_, b.at, str("a variable is bound twice, got `", b.name, "`"));
    }
    return v;
  }

  // ------------------------------------------------------------------------------------- atoms
  Atom atom(const Scope& scope, const ParsedAtom& a) {
    if (a.is_literal) {
      Literal l;
      l.dtype = a.type.dtype;
      if (!read_literal(a.text, l)) {
        parse_error(text_, a.at, str("a number of type ", a.type, " is expected, got ", a.text));
      }
      return Atom::of(l);
    }
    if (a.text == "_") {
      if (scope.unused().size() == 1) return Atom::of(scope.unused()[0]);
      parse_error(text_, a.at, "`_` must stand for one variable where it is read");
    }
    const Var* v = scope.find(a.text);
    if (!v) parse_error(text_, a.at, str("a variable is not bound, got `", a.text, "`"));
    return Atom::of(*v);
  }
  // Results of a call that nobody reads: the text does not tell them apart, so take them in order.
  Atom output(const Scope& scope, const ParsedAtom& a, std::size_t& unused) {
    if (a.text != "_" || unused >= scope.unused().size()) return atom(scope, a);
    return Atom::of(scope.unused()[unused++]);
  }

  // --------------------------------------------------------------------------------- equations
  Equation equation(Program& p, Scope& scope, const ParsedEquation& parsed) {
    Equation e;
    e.prim = primitives_.at(parsed.primitive);
    if (file_ != nullptr) e.at = lines_.place(file_, parsed.at);
    Types in, out;
    for (const ParsedAtom& a : parsed.in) {
      e.in.push_back(atom(scope, a));
      in.push_back(p.type(e.in.back()));
    }
    if (e.prim->arity >= 0 && in.size() != static_cast<std::size_t>(e.prim->arity)) {
      parse_error(text_, parsed.at,
                  str(e.prim->name, ": the number of operands must be ", e.prim->arity, ", got ",
                      in.size()));
    }
    for (const ParsedBinder& b : parsed.out) out.push_back(b.type);
    std::int64_t wide = 0;
    e.params = params(*e.prim, parsed, wide);
    complete(e, in, out, parsed.at);
    if (wide == 0) wide = numpy_ints_in(parsed);
    if (wide > 0) e.params = e.params.with(numpy_ints, wide);
    for (std::size_t i = 0; i < out.size(); ++i) {
      e.out.push_back(bind_variable(p, scope, parsed.out[i], out[i]));
    }
    return e;
  }

  // Params that are broken over lines although they fit were wider when JAX laid them out: it
  // printed some integers as np.int64(n). How many, at least.
  std::int64_t numpy_ints_in(const ParsedEquation& e) const {
    for (const ParsedParam& p : e.params) {
      if (p.is_program || p.is_program_tuple) return 0;
    }
    if (e.params.empty()) return 0;
    const std::string_view params = text_.substr(e.params_begin, e.params_end - e.params_begin);
    if (params.find('\n') == std::string_view::npos)
      return missing_columns(operands_break_at(e), 0, 80);
    std::int64_t flat = 2;  // the brackets
    for (const ParsedParam& p : e.params) {
      flat += static_cast<std::int64_t>(p.key.size() + 1 + p.text.size());
    }
    flat += static_cast<std::int64_t>(e.params.size()) - 1;  // spaces between them
    return missing_columns(e.params_begin, flat, 81);
  }
  // The end of the first line of operands that go on in the next; npos: they do not.
  std::size_t operands_break_at(const ParsedEquation& e) const {
    for (std::size_t i = 1; i < e.in.size(); ++i) {
      const std::size_t begin = e.in[i - 1].at;
      const std::size_t end = text_.substr(begin, e.in[i].at - begin).find('\n');
      if (end != std::string_view::npos) return begin + end;
    }
    return std::string_view::npos;
  }
  // How many np.int64( ) it takes until the text from here on, `width` wide, ends behind column
  // `limit`.
  std::int64_t missing_columns(std::size_t at, std::int64_t width, std::int64_t limit) const {
    if (at == std::string_view::npos) return 0;
    const std::size_t line = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const std::size_t column = at - (line == std::string_view::npos ? 0 : line + 1);
    const std::int64_t missing = limit - static_cast<std::int64_t>(column) - width;
    return missing <= 0 ? 0 : (missing + 9) / 10;
  }

  // Rebuilds the params that are not printed and checks the types of the results.
  void complete(Equation& e, const Types& in, Types& out, std::size_t at) const {
    Types computed = out;
    try {
      if (e.prim->parsed_params) e.params = e.prim->parsed_params(e.params, in, out);
      if (e.prim->parsed_as) e.prim = e.prim->parsed_as(e.params);
      const std::string broken = broken_param(*e.prim, e.params);
      if (!broken.empty()) parse_error(text_, at, broken);
      if (e.prim->type) computed = e.prim->type(in, e.params);
    } catch (const ParseError&) {
      throw;
    } catch (const Error& error) {
      parse_error(text_, at, error.what());
    }
    const auto wrong = [&](const std::string& got) {
      parse_error(text_, at, str(e.prim->name, ": the results have other types, got ", got));
    };
    if (computed.size() != out.size()) wrong(str(out.size(), " results for ", computed.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (computed[i].dtype != out[i].dtype || computed[i].shape != out[i].shape) {
        wrong(str(out[i], " for ", computed[i]));
      }
      out[i].weak_type = computed[i].weak_type;
    }
  }

  // The params as the primitive's rules want them; those it completes are still missing.
  Params params(const Primitive& prim, const ParsedEquation& e, std::int64_t& numpy) {
    Params result;
    std::string name;
    for (const ParsedParam& p : e.params) {
      if (p.key == "name") name = p.text;
      if (result.find(p.key)) parse_error(text_, p.at, str("a param is given twice, got ", p.key));
      const ParamRule* rule = rule_of(prim, p.key);
      if (rule == nullptr && !is_neutral(p)) {
        parse_error(text_, p.at,
                    str(prim.name, ": there is no param ", p.key, ", got ", p.key, "=",
                        p.programs.empty() ? p.text : "a program"));
      }
      if (rule == nullptr || rule->otherwise == unused) continue;
      result = result.with(rule->key, attr(prim, *rule, p, name, numpy));
    }
    for (const ParamRule& rule : prim.param_rules) {
      if (result.find(rule.key) || rule.otherwise == absent || rule.otherwise == completed ||
          rule.otherwise == unused) {
        continue;
      }
      if (rule.otherwise == nullptr) {
        parse_error(text_, e.at,
                    str(prim.name, ": the param ", rule.key, " is missing, got ",
                        e.params.empty() ? "no params" : "others only"));
      }
      result = result.with(rule.key, parse_attr(rule.forms, rule.otherwise).value());
    }
    return result;
  }
  static const ParamRule* rule_of(const Primitive& prim, std::string_view key) {
    for (const ParamRule& rule : prim.param_rules) {
      if (rule.key == key) return &rule;
    }
    return nullptr;
  }
  Attr attr(const Primitive& prim, const ParamRule& rule, const ParsedParam& p,
            const std::string& name, std::int64_t& numpy) {
    const bool is_read_as_it_stands = rule.forms == form::text;
    std::optional<Attr> value;
    if (p.is_program && (rule.forms & form::program) != 0) value = shared(p.programs[0], name);
    if (p.is_program_tuple && (rule.forms & form::programs) != 0) {
      Programs programs;
      for (const ParsedProgramUse& use : p.programs) programs.push_back(shared(use, name));
      value = std::move(programs);
    }
    if (!p.is_program && !p.is_program_tuple) {
      value = parse_attr(rule.forms,
                         is_read_as_it_stands ? std::string(p.text) : without_numpy(p.text, numpy));
    }
    // An object is still the text that the primitive makes it of.
    const bool is_text = value && std::holds_alternative<std::string>(*value);
    if (value && (is_text || holds(rule.forms, *value))) return *std::move(value);
    const std::string got = !p.programs.empty()  ? "a program"
                            : p.is_program_tuple ? "()"
                                                 : std::string(p.text);
    parse_error(text_, p.at,
                str(prim.name, ": the param ", rule.key, " must be ", forms_text(rule.forms),
                    ", got ", got));
  }

  ProgramPtr shared(const ParsedProgramUse& use, const std::string& name) {
    if (!use.body.empty()) return std::make_shared<const Program>(program(use.body[0], name));
    const auto it = definitions_.find(use.name);
    if (it == definitions_.end()) {
      parse_error(text_, use.at, str("a program is not defined, got `", use.name, "`"));
    }
    Definition& definition = it->second;
    if (definition.in_progress) {
      parse_error(text_, use.at, str("a program contains itself, got `", use.name, "`"));
    }
    if (!definition.built) {
      definition.in_progress = true;
      definition.built = std::make_shared<const Program>(program(*definition.parsed, name));
      definition.in_progress = false;
    }
    return definition.built;
  }

  std::string_view text_;
  const char* file_;
  Lines lines_;
  ParsedText tree_;
  std::unordered_map<std::string_view, const Primitive*> primitives_;
  std::unordered_map<std::string_view, Definition> definitions_;
  int depth_ = 0;
};

}  // namespace

Program parse_program(std::string_view text, std::span<const Primitive* const> primitives,
                      const char* file) {
  return ProgramBuilder(text, primitives, file).build();
}

}  // namespace reprise
