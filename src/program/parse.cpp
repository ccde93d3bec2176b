#include "program/parse.h"

#include "program/parse_tree.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <unordered_map>

namespace reprise {
namespace {

// Params refer to their names: a name that was read lives as long as the process.
const char* interned(std::string_view key) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> keys;
  const std::lock_guard lock(mutex);
  const auto it = keys.find(key);
  return it != keys.end() ? it->c_str() : keys.emplace(key).first->c_str();
}

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
    const auto it = primitives_.find(parsed.primitive);
    if (it == primitives_.end()) {
      parse_error(text_, parsed.at, str("an unknown primitive, got `", parsed.primitive, "`"));
    }
    Equation e;
    e.prim = it->second;
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
    e.params = params(parsed);
    complete(e, in, out, parsed.at);
    const std::int64_t wide = numpy_ints_in(parsed);
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
      if (e.prim->type) computed = e.prim->type(in, e.params);
    } catch (const InternalError&) {  // a rule read a param that is not there
      parse_error(text_, at,
                  str(e.prim->name, ": a param is missing or has another kind of value"));
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

  Params params(const ParsedEquation& e) {
    Params result;
    std::string name;
    for (const ParsedParam& p : e.params) {
      if (p.key == "name") name = p.text;
      if (result.find(p.key)) parse_error(text_, p.at, str("a param is given twice, got ", p.key));
      result = result.with(interned(p.key), attr(p, name));
    }
    return result;
  }
  Attr attr(const ParsedParam& p, const std::string& name) {
    if (p.is_program) return shared(p.programs[0], name);
    if (!p.is_program_tuple) return parse_attr(p.key, p.text);
    Programs programs;
    for (const ParsedProgramUse& use : p.programs) programs.push_back(shared(use, name));
    return programs;
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
