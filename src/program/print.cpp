#include "program/print.h"

#include "program/layout.h"
#include "program/primitive.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

namespace reprise {
namespace {

// A call that prints as if it were inlined, and gives its name to what it calls.
bool is_jit(const Equation& e) { return std::string_view(e.prim->name) == "jit"; }

// ------------------------------------------------------------------------------- shared programs
struct Shared {
  const Program* program;
  std::string name;
};

// Which programs are printed before the rest, in the order of a breadth-first walk.
class SharedPrograms {
 public:
  explicit SharedPrograms(const Program& top) : top_(&top) {
    visit(top, nullptr);
    while (!queue_.empty()) {
      const Program& p = *queue_.front();
      queue_.pop_front();
      for (const Equation& e : p.eqns) {
        for_each_program(e.params, [&](const ProgramPtr& inner) { visit(*inner, &e); });
      }
    }
  }

  std::vector<Shared> named() const {
    std::map<std::string, int> uses;
    std::vector<Shared> result;
    for (const Program* p : order_) {
      const Found& found = found_.at(p);
      if (!found.twice && (p == top_ || p->eqns.size() <= 10)) continue;
      std::string name = found.name;
      const int used = uses[name]++;
      if (used > 0) {
        name += std::to_string(used);
        ++uses[name];
      }
      result.push_back({p, std::move(name)});
    }
    return result;
  }

 private:
  struct Found {
    std::string name = "jaxpr";
    bool named = false;
    bool twice = false;  // printed at more than one place
  };

  // What a program that is printed twice contains is printed twice too: such a program is walked
  // once more, which keeps the walk linear.
  void visit(const Program& p, const Equation* user) {
    const auto [it, is_new] = found_.try_emplace(&p);
    Found& found = it->second;
    suggest_name(found, user);
    if (is_new) order_.push_back(&p);
    if (!is_new && found.twice) return;
    found.twice = !is_new;
    queue_.push_back(&p);
  }

  static void suggest_name(Found& found, const Equation* user) {
    if (!user || found.named || !is_jit(*user)) return;
    const Attr* attr = user->params.find("name");
    const std::string* name = attr ? std::get_if<std::string>(attr) : nullptr;
    if (!name) return;
    const std::size_t begin = name->find_first_not_of("<>");
    const std::size_t end = name->find_last_not_of("<>");
    found.name = begin == std::string::npos ? "" : name->substr(begin, end + 1 - begin);
    found.named = true;
  }

  const Program* top_;
  std::unordered_map<const Program*, Found> found_;
  std::vector<const Program*> order_;  // by first visit
  std::deque<const Program*> queue_;
};

// ------------------------------------------------------------------------------------------ names
// 0 -> a, 25 -> z, 26 -> ba: base 26 without leading zeros.
std::string letters(std::size_t n) {
  std::string s;
  do {
    s.insert(s.begin(), static_cast<char>('a' + n % 26));
    n /= 26;
  } while (n > 0);
  return s;
}

class Names {
 public:
  void reserve(const std::string& name) { reserved_.insert(name); }

  const std::string& of(const Program& p, Var v) {
    static const auto& unknown = *new const std::string("?");
    std::string* name = slot(p, v);
    if (!name) return unknown;
    while (name->empty()) {
      std::string next = letters(count_++);
      if (!reserved_.contains(next)) *name = std::move(next);
    }
    return *name;
  }

  // Variables that no equation and no output reads.
  void hide_unused(const Program& p) {
    std::vector<bool> used(p.types.size());
    const auto mark = [&](const Atom& a) {
      if (a.is_var() && slot(p, a.var)) used[static_cast<std::size_t>(a.var)] = true;
    };
    for (const Equation& e : p.eqns) std::for_each(e.in.begin(), e.in.end(), mark);
    std::for_each(p.out.begin(), p.out.end(), mark);
    for (const Equation& e : p.eqns) {
      for (Var v : e.out) {
        std::string* name = slot(p, v);
        if (name && !used[static_cast<std::size_t>(v)]) *name = "_";
      }
    }
  }

  // The variables of an inlined function take the names of the values they stand for.
  template <class Inner, class Outer>
  void share(const Program& inner, std::span<const Inner> to, const Program& outer,
             std::span<const Outer> from) {
    if (to.size() != from.size()) return;
    std::unordered_set<Var> taken;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Var mine = var_of(to[i]), theirs = var_of(from[i]);
      std::string* name = slot(inner, mine);
      if (!name || !name->empty() || theirs < 0 || taken.contains(theirs)) continue;
      taken.insert(theirs);
      *name = of(outer, theirs);
    }
  }

 private:
  static Var var_of(Var v) { return v; }
  static Var var_of(const Atom& a) { return a.var; }
  // Null when the variable is none of the program's: the checker prints broken programs too.
  std::string* slot(const Program& p, Var v) {
    std::vector<std::string>& names = names_[&p];
    names.resize(p.types.size());
    return v >= 0 && static_cast<std::size_t>(v) < names.size()
               ? &names[static_cast<std::size_t>(v)]
               : nullptr;
  }

  std::unordered_map<const Program*, std::vector<std::string>> names_;
  std::unordered_set<std::string> reserved_;
  std::size_t count_ = 0;
};

// ---------------------------------------------------------------------------------------- printer
// Addresses differ from run to run: " at 0x7f3a" -> " at 0xXXXX".
std::string mask_addresses(std::string text) {
  constexpr std::string_view mark = " at 0x";
  std::size_t at = 0;
  while ((at = text.find(mark, at)) != std::string::npos) {
    at += mark.size();
    const std::size_t end =
        std::min(text.find_first_not_of("0123456789abcdefABCDEF", at), text.size());
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(at),
              text.begin() + static_cast<std::ptrdiff_t>(end), 'X');
  }
  return text;
}

std::vector<Param> params_to_print(const Equation& e) {
  if (e.prim->printed_params) return e.prim->printed_params(e.params);
  std::vector<Param> params = e.params.items();
  std::erase_if(params, [](const Param& p) { return std::string_view(p.key) == numpy_ints; });
  std::sort(params.begin(), params.end(), [](const Param& a, const Param& b) {
    return std::string_view(a.key) < std::string_view(b.key);
  });
  return params;
}

// How much wider than ours JAX's text of the params is.
std::int64_t numpy_width(const Equation& e) {
  const Attr* count = e.params.find(numpy_ints);
  constexpr std::int64_t wrapping = 10;  // "np.int64(" and ")"
  return count == nullptr ? 0 : wrapping * std::get<std::int64_t>(*count);
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string print(const Program& top) {
    names_.hide_unused(top);
    const std::vector<Shared> shared = SharedPrograms(top).named();
    for (const Shared& s : shared) {
      shared_.emplace(s.program, s.name);
      names_.reserve(s.name);
    }
    for (const Shared& s : shared) {
      doc_.text("let ");
      doc_.text(s.name);
      doc_.text(" = ");
      body(*s.program);
      doc_.text(" in");
      doc_.brk();
    }
    body(top);
    return doc_.render(options_.width);
  }

 private:
  void body(const Program& p) {
    const std::span<const Var> in = p.in;
    const std::size_t num_consts = std::min(p.num_consts, in.size());
    doc_.group([&] {
      doc_.nest(2, [&] {
        doc_.text("{ lambda ");
        list(in.first(num_consts), "", [&](Var v) { binder(p, v); });
        doc_.text("; ");
        list(in.subspan(num_consts), "", [&](Var v) { binder(p, v); });
        doc_.text(". let");
        doc_.nest(2, [&] {
          doc_.brk();
          for (std::size_t i = 0; i < p.eqns.size(); ++i) {
            if (i > 0) doc_.brk("; ");
            equation(p, p.eqns[i]);
          }
        });
        doc_.brk();
        doc_.text("in (");
        list(p.out, ",", [&](const Atom& a) { atom(p, a); });
        doc_.text(p.out.size() == 1 ? ",)" : ")");
      });
      doc_.text(" }");
    });
  }

  void equation(const Program& p, const Equation& e) {
    const std::vector<Param> params = params_to_print(e);
    if (is_jit(e)) name_inlined(p, e);
    if (!e.out.empty()) {
      list(e.out, "", [&](Var v) { binder(p, v); });
      if (options_.source_info)
        doc_.text(" = ", to_string(e.at));
      else
        doc_.text(" = ");
    }
    doc_.text(e.prim->name);
    print_params(params, numpy_width(e));
    doc_.text(" ");
    list(e.in, "", [&](const Atom& a) { atom(p, a); });
  }

  void name_inlined(const Program& p, const Equation& e) {
    for_each_program(e.params, [&](const ProgramPtr& inner) {
      if (shared_.contains(inner.get())) return;
      const std::span<const Var> in = inner->in;
      const std::span<const Var> args = in.subspan(std::min(inner->num_consts, in.size()));
      names_.share(*inner, args, p, std::span<const Atom>(e.in));
      names_.share(*inner, std::span<const Atom>(inner->out), p, std::span<const Var>(e.out));
    });
  }

  // Items that fill the line: each separator is a group of its own.
  template <class Items, class F>
  void list(const Items& items, std::string_view separator, F&& print_item) {
    doc_.nest(2, [&] {
      doc_.group([&] {
        bool first = true;
        for (const auto& item : items) {
          if (!first) {
            doc_.text(separator);
            doc_.group([&] { doc_.brk(); });
          }
          first = false;
          print_item(item);
        }
      });
    });
  }

  void binder(const Program& p, Var v) {
    doc_.text(names_.of(p, v));
    if (!options_.print_shapes || v < 0 || static_cast<std::size_t>(v) >= p.types.size()) return;
    doc_.text(":");
    doc_.text(to_string(p.type(v)));
  }
  void atom(const Program& p, const Atom& a) {
    if (a.is_var()) {
      doc_.text(names_.of(p, a.var));
    } else {
      doc_.text(to_string(a.literal));
      doc_.text(":");
      doc_.text(to_string(a.literal.type()));
    }
  }

  // open, items on lines of their own if need be, close
  template <class Items, class F>
  void bracketed(std::string_view open, const Items& items, std::string_view close,
                 F&& print_item) {
    doc_.group([&] {
      doc_.nest(2, [&] {
        doc_.text(open);
        doc_.brk("");
        bool first = true;
        for (const auto& item : items) {
          if (!first) doc_.brk();
          first = false;
          print_item(item);
        }
      });
      doc_.brk("");
      doc_.text(close);
    });
  }

  void print_params(const std::vector<Param>& params, std::int64_t room) {
    if (params.empty()) return;
    bracketed("[", params, "]", [&](const Param& param) {
      doc_.room(std::exchange(room, 0));
      doc_.text(param.key);
      doc_.text("=");
      value(param.value);
    });
  }

  void value(const Attr& attr) {
    if (const auto* one = std::get_if<ProgramPtr>(&attr)) return use(*one);
    if (const auto* several = std::get_if<Programs>(&attr)) return tuple(*several);
    const std::string text = python_text(attr);
    // An empty tuple of numbers is also an empty tuple of programs.
    if (text == "()" && !std::holds_alternative<std::string>(attr)) return tuple({});
    doc_.text(mask_addresses(text));
  }
  void tuple(const Programs& programs) {
    bracketed("(", programs, ")", [&](const ProgramPtr& program) { use(program); });
  }
  void use(const ProgramPtr& program) {
    const auto it = shared_.find(program.get());
    if (it != shared_.end())
      doc_.text(it->second);
    else
      body(*program);
  }

  PrintOptions options_;
  Layout doc_;
  Names names_;
  std::unordered_map<const Program*, std::string> shared_;
};

}  // namespace

std::string to_text(const Program& program, const PrintOptions& options) {
  return Printer(options).print(program);
}

}  // namespace reprise
