// Every kind of control flow, and every pair of kinds, under every transform, with every choice of
// mapped parts: against the same functions written with C++ statements, row by row.
#include "control/flows.h"

#include "derivatives.h"

namespace {

using namespace check;
using flows::Flow;
using flows::Inner;
using flows::Kind;
using flows::Parts;
using Function = std::function<Arrays(Array v, Array w, Array k, Array xs)>;

constexpr std::int64_t rows = 3;
constexpr unsigned parts = 4, all_parts = (1u << parts) - 1;
enum : unsigned { maps_v = 1, maps_w = 2, maps_k = 4, maps_xs = 8 };

Array waves(rp::Shape shape, double from) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(0.6 * std::sin(from + 1.7 * static_cast<double>(i)));
  return rp::array(values, shape);
}
// Rows differ in how often they loop and in the branches that they take; parts that are not mapped
// have one row.
Arrays arguments(unsigned mask) {
  const Arrays whole = {waves({rows, 3}, 0.3), waves({rows}, 1.1), rp::array({2, 0, 3}),
                        waves({rows, 4, 3}, 2.0)};
  Arrays some;
  for (unsigned i = 0; i < parts; ++i) some.push_back(mask >> i & 1 ? whole[i] : whole[i][0]);
  return some;
}
Arrays call(const Function& f, const Arrays& x) { return f(x[0], x[1], x[2], x[3]); }

rp::InAxes axes(unsigned mask) {
  std::vector<rp::InAxes::Axis> out;
  for (unsigned i = 0; i < parts; ++i)
    out.push_back(mask >> i & 1 ? rp::InAxes::Axis(0) : std::nullopt);
  return out;
}
Function mapped(const Function& f, unsigned mask) { return rp::vmap(f, {.in_axes = axes(mask)}); }
Function by_rows(const Function& f, unsigned mask) {
  return [f, mask](Array v, Array w, Array k, Array xs) {
    std::vector<Arrays> results;  // by result, then by row
    for (std::int64_t r = 0; r < rows; ++r) {
      Arrays row = {v, w, k, xs};
      for (unsigned i = 0; i < parts; ++i) row[i] = mask >> i & 1 ? row[i][r] : row[i];
      const Arrays out = call(f, row);
      results.resize(out.size());
      for (std::size_t j = 0; j < out.size(); ++j) results[j].push_back(out[j]);
    }
    Arrays stacked;
    for (const Arrays& each : results) stacked.push_back(rp::stack(each));
    return stacked;
  };
}

// The parts that have derivatives; k is closed over.
auto without_k(const Function& f, Array k) {
  return [f, k](Array v, Array w, Array xs) { return f(v, w, k, xs)[0]; };
}
Function jvp_of(const Function& f) {
  return [f](Array v, Array w, Array k, Array xs) {
    const auto [y, dy] = rp::jvp(without_k(f, k), std::tuple{v, w, xs},
                                 std::tuple{rp::cos(v), 0.5 * w, rp::sin(xs)});
    return Arrays{y, dy};
  };
}
Function grad_of(const Function& f) {
  return [f](Array v, Array w, Array k, Array xs) {
    const auto [y, backward] = rp::vjp(without_k(f, k), v, w, xs);
    const auto [dv, dw, dxs] = backward(1.0 + 0.1 * rp::cos(y));
    return Arrays{y, dv, dw, dxs};
  };
}
Function checkpoint_of(const Function& f) { return rp::checkpoint(f); }
Function jit_of(const Function& f) { return rp::jit(f); }

void same(const std::string& how, const Arrays& got, const Arrays& wanted) {
  INFO(how);
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("result " << i);
    check_close(got[i], wanted[i], 1e-10);
  }
}

struct Pair {
  Function library, statements;
};
Function function_of(const std::shared_ptr<const Flow>& flow, const std::vector<Kind>& nest) {
  return [flow, nest](Array v, Array w, Array k, Array xs) {
    Inner inner = flows::innermost;
    for (auto kind = nest.rbegin(); kind != nest.rend(); ++kind) {
      inner = [flow, apply = kind->apply, inner](Parts p) {
        return apply(*flow, inner, std::move(p));
      };
    }
    return Arrays{inner({v, w, k, xs})};
  };
}
Pair functions_of(const std::vector<Kind>& nest) {
  return {function_of(std::make_shared<const flows::Library>(), nest),
          function_of(std::make_shared<const flows::Statements>(), nest)};
}

// A derivative or nothing, of the flow and of the statements.
struct Form {
  const char* name;
  Function (*of)(const Function&);
};
Function itself(const Function& f) { return f; }
std::vector<Form> forms_of(bool is_reversible) {
  std::vector<Form> forms = {{"values", itself}, {"jvp", jvp_of}};
  if (is_reversible) forms.push_back({"gradients", grad_of});
  return forms;
}

// One kind of flow, all transforms.
void check_unmapped(const Form& form, const Pair& f) {
  const Arrays x = arguments(0), wanted = call(form.of(f.statements), x);
  same("evaluated", call(form.of(f.library), x), wanted);
  same("jit", call(jit_of(form.of(f.library)), x), wanted);
  same("of jit", call(form.of(jit_of(f.library)), x), wanted);
  same("of checkpoint", call(form.of(checkpoint_of(f.library)), x), wanted);
  same("jit of checkpoint", call(jit_of(form.of(checkpoint_of(f.library))), x), wanted);
  same("jit in checkpoint", call(jit_of(form.of(checkpoint_of(jit_of(f.library)))), x), wanted);
}
void check_mapped(const Form& form, const Pair& f, unsigned mask) {
  const Arrays x = arguments(mask), wanted = call(by_rows(form.of(f.statements), mask), x);
  const Function whole = form.of(f.library), kept = form.of(checkpoint_of(f.library));
  same("vmap", call(mapped(whole, mask), x), wanted);
  same("jit of vmap", call(jit_of(mapped(whole, mask)), x), wanted);
  same("vmap of jit", call(mapped(jit_of(whole), mask), x), wanted);
  same("jit of vmap of checkpoint", call(jit_of(mapped(kept, mask)), x), wanted);
  if (form.of == itself) return;
  const Arrays of_rows = call(form.of(by_rows(f.statements, mask)), x);
  same("of vmap", call(form.of(mapped(f.library, mask)), x), of_rows);
  same("jit, of checkpoint of vmap",
       call(jit_of(form.of(checkpoint_of(mapped(f.library, mask)))), x), of_rows);
}
// Mapped twice: what the inner map leaves, the outer one maps.
void check_mapped_twice(const Pair& f, unsigned mask) {
  const unsigned rest = all_parts & ~mask;
  const Arrays x = arguments(all_parts),
               wanted = call(by_rows(by_rows(f.statements, mask), rest), x);
  same("vmap of vmap", call(mapped(mapped(f.library, mask), rest), x), wanted);
  same("jit of vmap of vmap", call(jit_of(mapped(mapped(f.library, mask), rest)), x), wanted);
}

std::string mask_text(unsigned mask) {
  std::string text = "mapped:";
  for (unsigned i = 0; i < parts; ++i) text += mask >> i & 1 ? std::string(" ") + "vwkx"[i] : "";
  return text;
}

}  // namespace

TEST_CASE(
    "control flow under every transform, whatever is mapped, equals C++ statements row by row") {
  for (const Kind& kind : flows::kinds()) {
    INFO(kind.name);
    const Pair f = functions_of({kind});
    for (const Form& form : forms_of(kind.is_reversible)) {
      INFO(form.name);
      check_unmapped(form, f);
      for (unsigned mask = 1; mask <= all_parts; ++mask) {
        INFO(mask_text(mask));
        check_mapped(form, f, mask);
      }
    }
    for (unsigned mask = 1; mask < all_parts; ++mask) {
      INFO(mask_text(mask));
      check_mapped_twice(f, mask);
    }
  }
}

TEST_CASE("control flow inside control flow under vmap and jit equals C++ statements row by row") {
  for (const Kind& outer : flows::kinds()) {
    for (const Kind& inner : flows::kinds()) {
      INFO(outer.name << " of " << inner.name);
      const Pair f = functions_of({outer, inner});
      const bool is_reversible = outer.is_reversible && inner.is_reversible;
      const Form derivative = is_reversible ? Form{"gradients", grad_of} : Form{"jvp", jvp_of};
      const Arrays x = arguments(0);
      same("jit", call(jit_of(derivative.of(f.library)), x), call(derivative.of(f.statements), x));
      for (unsigned mask : {+maps_v, +maps_w, +maps_k, +maps_xs, all_parts}) {
        INFO(mask_text(mask));
        const Arrays y = arguments(mask), wanted = call(by_rows(f.statements, mask), y);
        same("vmap", call(mapped(f.library, mask), y), wanted);
        same("jit of vmap", call(jit_of(mapped(f.library, mask)), y), wanted);
        const Arrays slopes = call(by_rows(derivative.of(f.statements), mask), y);
        const Function kept = derivative.of(checkpoint_of(f.library));
        same("jit of vmap of the derivative", call(jit_of(mapped(kept, mask)), y), slopes);
      }
    }
  }
}
