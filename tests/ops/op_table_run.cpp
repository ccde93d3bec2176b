// What holds for every row of the table.
#include "ops/op_table.h"
#include "program/trace.h"
#include "reprise/autodiff.h"
#include "runtime/compile.h"
#include "without_pass.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace reprise::op_table {
namespace {

// ------------------------------------------------------------------------------------------ inputs
// A small linear congruential generator: the same numbers on every machine.
class Lcg {
 public:
  explicit Lcg(std::uint32_t seed) : state_(seed * 2654435761u + 12345u) {}
  double next() {  // in [0, 1)
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<double>(state_ >> 8) / (1 << 24);
  }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(next() * static_cast<double>(n));
  }

 private:
  std::uint32_t state_;
};

std::uint32_t seed_of(const std::string& name) {
  std::uint32_t seed = 7;
  for (char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

bool is_signed(Dtype d) {
  return is_floating(d) || d == int8 || d == int16 || d == int32 || d == int64;
}
double number_of_dtype(double in_unit, const In& in, Dtype d) {
  if (is_floating(d)) return in.low + (in.high - in.low) * in_unit;
  if (d == bool_) return in_unit < 0.5 ? 0 : 1;
  return std::floor(13 * in_unit) - (is_signed(d) ? 6 : 0);
}

Array to_array(const Numbers& x, Dtype d) { return array(x.values, x.shape).astype(d); }
Numbers to_numbers(const Array& x) { return {x.shape(), x.to_vector<double>()}; }
Many to_numbers(const Arrays& xs) {
  Many result;
  for (const Array& x : xs) result.push_back(to_numbers(x));
  return result;
}

// The values of an operand; `slice` numbers the slices of a mapped one.
Numbers make_values(const Row& row, std::size_t which, const Shape& shape, Dtype d,
                    std::int64_t slice = 0) {
  const In& in = row.in[which];
  const auto count = static_cast<std::size_t>(count_of(shape));
  Numbers result{shape, std::vector<double>(count)};
  std::vector<double>& v = result.values;
  if (!in.fixed.empty()) {
    for (std::size_t i = 0; i < count; ++i) {
      v[i] = in.fixed[(i + static_cast<std::size_t>(slice)) % in.fixed.size()];
    }
    return result;
  }
  Lcg random(seed_of(row.name) + static_cast<std::uint32_t>(which) * 101 +
             static_cast<std::uint32_t>(slice) * 977);
  if (in.fill == Fill::uniform || !is_floating(d)) {
    for (double& x : v) x = number_of_dtype(random.next(), in, d);
    return result;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double position = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    v[i] = in.low + (in.high - in.low) * position;
  }
  for (std::size_t i = count; i > 1; --i) std::swap(v[i - 1], v[random.below(i)]);
  return result;
}

// One way to run a row: a dtype and a shape for each operand.
struct Instance {
  const Row& row;
  Dtype dtype;
  std::vector<Shape> shapes;

  Dtype dtype_of(std::size_t i) const { return row.in[i].dtype.value_or(dtype); }
  Array operand(std::size_t i, std::int64_t slice = 0) const {
    return to_array(make_values(row, i, shapes[i], dtype_of(i), slice), dtype_of(i));
  }
  std::string name() const {
    std::string text = row.name + ":";
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      text += " " + to_string(Type{dtype_of(i), shapes[i]});
    }
    return text;
  }
  Arrays operands() const {
    Arrays x;
    for (std::size_t i = 0; i < shapes.size(); ++i) x.push_back(operand(i));
    return x;
  }
};

detail::Callee callee(const Function& f, std::size_t arguments) {
  return {f, "f", std::vector<std::string>(arguments, "x"), Location::current(), ""};
}
Array direction(const Type& type, std::uint32_t seed) {
  Lcg random(seed);
  const auto in_cube = [&](const Shape&) { return 2 * random.next() - 1; };
  return to_array(tabulate(type.shape, in_cube), type.dtype);
}

// -------------------------------------------------------------------------------------- comparison
double rounding_error(Dtype d) {
  if (d == float64) return 0x1p-52;
  if (d == float32) return 0x1p-23;
  if (d == float16) return 0x1p-10;
  return d == bfloat16 ? 0x1p-7 : 0;
}
// Integers wrap around; floats round.
double as_dtype(double v, Dtype d) {
  if (!is_integer(d)) return to_array({{}, {v}}, d).item<double>();
  const double size = std::exp2(8.0 * static_cast<double>(itemsize(d)));
  const double most = is_signed(d) ? size / 2 : size;
  if (v < most && v >= most - size) return v;
  double wrapped = std::fmod(v, size);
  if (wrapped < 0) wrapped += size;
  return is_signed(d) && wrapped >= most ? wrapped - size : wrapped;
}
bool is_close(double got, double expected, double tolerance) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (got == expected) return true;
  return std::abs(got - expected) <= tolerance * std::max(0.1, std::abs(expected));
}
void expect_close(const std::string& what, const Numbers& got, const Numbers& expected,
                  double tolerance) {
  std::ostringstream text;
  text.precision(17);
  if (got.shape != expected.shape) {
    text << "shape " << to_string(Type{float64, got.shape}) << ", expected "
         << to_string(Type{float64, expected.shape});
  } else {
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      if (is_close(got.values[i], expected.values[i], tolerance)) continue;
      text << "element " << i << " is " << got.values[i] << ", expected " << expected.values[i];
      break;
    }
  }
  const std::string wrong = text.str();
  CHECK_MESSAGE(wrong.empty(), what, ": ", wrong);
}
void expect_close(const std::string& what, const Arrays& got, const Arrays& expected,
                  double tolerance) {
  REQUIRE_MESSAGE(got.size() == expected.size(), what);
  for (std::size_t k = 0; k < got.size(); ++k) {
    CHECK_MESSAGE(got[k].dtype() == expected[k].dtype(), what);
    expect_close(what, to_numbers(got[k]), to_numbers(expected[k]), tolerance);
  }
}
double inner_product(const Arrays& a, const Arrays& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const std::vector<double> x = a[k].to_vector<double>(), y = b[k].to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  }
  return sum;
}

// ------------------------------------------------------------------------------ values and
// programs
void check_values(const Instance& run, const Arrays& x, const Arrays& y) {
  const Many expected = run.row.reference(to_numbers(x));
  REQUIRE(y.size() == expected.size());
  for (std::size_t k = 0; k < y.size(); ++k) {
    const Dtype d = y[k].dtype();
    Numbers rounded = expected[k];
    for (double& v : rounded.values) v = as_dtype(v, d);
    expect_close("the formula", to_numbers(y[k]), rounded, run.row.ulps * rounding_error(d));
  }
}

const Equation* find_equation(const Program& p, const Primitive& primitive) {
  for (const Equation& e : p.eqns) {
    if (e.prim == &primitive) return &e;
    const Equation* found = nullptr;
    for_each_program(e.params, [&](const ProgramPtr& body) {
      if (!found) found = find_equation(*body, primitive);
    });
    if (found) return found;
  }
  return nullptr;
}
// Equations read from text may have any number of operands: the rule throws an Error or accepts.
void check_operand_counts(const Equation& e, const Types& in) {
  if (e.prim->arity >= 0) {
    CHECK(static_cast<std::size_t>(e.prim->arity) == in.size());
    return;
  }
  for (std::size_t count = 0; count <= in.size() + 1; ++count) {
    Types types = in;
    types.resize(count, in.empty() ? Type{} : in[0]);
    try {
      e.prim->type(types, e.params);
    } catch (const Error&) {
      CHECK(count != in.size());
    }
  }
}
Types types_of_operands(const Program& p, const Equation& e) {
  Types types;
  for (const Atom& a : e.in) types.push_back(p.type(a));
  return types;
}
// The machine code of a function against its plain evaluation.
void check_compiled(const Instance& run, const std::string& what, const Function& f,
                    const Arrays& x, double ulps) {
  const Arrays y = f(x);
  const Jaxpr program = detail::trace_to_jaxpr(callee(f, x.size()), x);
  Arrays all = program.consts();
  all.insert(all.end(), x.begin(), x.end());
  const auto check = [&](const std::string& how) {
    const Arrays got = compile(*program.program())->run(all);
    REQUIRE(got.size() == y.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
      CHECK_MESSAGE(got[k].type() == y[k].type(), how);
      expect_close(how, to_numbers(got[k]), to_numbers(y[k]), ulps * rounding_error(y[k].dtype()));
    }
  };
  check(what);
  const char* pass = optional_pass(seed_of(run.name() + what) >> 8);
  const WithoutPass without(pass);
  check(what + " without " + pass);
}
void check_program(const Instance& run, const Arrays& x, const Arrays& y) {
  const Jaxpr program = detail::trace_to_jaxpr(callee(run.row.f, x.size()), x);
  if (run.row.primitive) {
    const Equation* e = find_equation(*program.program(), *run.row.primitive);
    REQUIRE(e != nullptr);
    if (!program.program()->eqns.empty() && e == &program.program()->eqns[0]) {
      check_operand_counts(*e, types_of_operands(*program.program(), *e));
    }
  }
  expect_close("the traced program", program.eval(x), y, 0);
  const Jaxpr parsed = parse_jaxpr(program.str());
  CHECK(parsed.str() == program.str());
  Arrays all = program.consts();
  all.insert(all.end(), x.begin(), x.end());
  expect_close("the parsed program", parsed.eval(all), y, 0);
  check_compiled(run, "compiled", run.row.f, x, std::max(run.row.ulps, 16.0));
}

// ------------------------------------------------------------------------------------- derivatives
// f as a function of its floating operands, giving its floating results.
struct Smooth {
  Function f;
  Arrays x;
};
Smooth floating_part(const Function& f, const Arrays& all) {
  std::vector<bool> active;
  Arrays x;
  for (const Array& a : all) {
    active.push_back(is_floating(a.dtype()));
    if (active.back()) x.push_back(a);
  }
  return {[f, all, active](const Arrays& given) {
            Arrays args = all;
            std::size_t next = 0;
            for (std::size_t i = 0; i < args.size(); ++i) {
              if (active[i]) args[i] = given[next++];
            }
            Arrays out;
            for (const Array& y : f(args)) {
              if (is_floating(y.dtype())) out.push_back(y);
            }
            return out;
          },
          x};
}
Arrays directions(const Arrays& x, std::uint32_t seed) {
  Arrays result;
  for (const Array& a : x) result.push_back(direction(a.type(), seed++));
  return result;
}
Arrays jvp_of(const Function& f, const Arrays& x, const Arrays& t) {
  return detail::jvp(callee(f, x.size()), x, t).second;
}
Arrays vjp_of(const Function& f, const Arrays& x, const Arrays& ct) {
  return detail::vjp(callee(f, x.size()), x).map.transposed(ct, Location::current());
}
Arrays moved(const Arrays& x, const Arrays& t, double step) {
  Arrays result;
  for (std::size_t k = 0; k < x.size(); ++k) {
    Numbers v = to_numbers(x[k]);
    const Numbers d = to_numbers(t[k]);
    for (std::size_t i = 0; i < v.values.size(); ++i) v.values[i] += step * d.values[i];
    result.push_back(array(v.values, v.shape));
  }
  return result;
}

// The jvp against central differences, the vjp against the jvp. The error of the differences is
// about step^2 (third derivative) + rounding / step.
void check_first(const std::string& what, const Smooth& s, double tolerance) {
  constexpr double step = 1e-5;
  const Arrays t = directions(s.x, 11);
  const Arrays dy = jvp_of(s.f, s.x, t);
  const Arrays above = s.f(moved(s.x, t, step)), below = s.f(moved(s.x, t, -step));
  for (std::size_t k = 0; k < dy.size(); ++k) {
    Numbers difference = to_numbers(above[k]);
    const Numbers low = to_numbers(below[k]);
    for (std::size_t i = 0; i < low.values.size(); ++i) {
      difference.values[i] = (difference.values[i] - low.values[i]) / (2 * step);
    }
    expect_close(what + " against differences", to_numbers(dy[k]), difference, tolerance);
  }
  const Arrays ct = directions(dy, 57);
  const Arrays dx = vjp_of(s.f, s.x, ct);
  const double forward = inner_product(ct, dy), back = inner_product(dx, t);
  CHECK_MESSAGE(is_close(back, forward, 1e-9), what, " backward ", back, ", forward ", forward);
}
Smooth gradient_of(const Smooth& s) {
  const Arrays ct = directions(s.f(s.x), 91);
  return {[f = s.f, ct](const Arrays& x) { return vjp_of(f, x, ct); }, s.x};
}
// Cotangents have the types of the operands, tangents those of the results.
void check_derivative_types(const Smooth& s) {
  const Arrays y = s.f(s.x);
  const Arrays dy = jvp_of(s.f, s.x, directions(s.x, 5));
  const Arrays dx = vjp_of(s.f, s.x, directions(y, 6));
  for (std::size_t k = 0; k < y.size(); ++k) {
    CHECK(dy[k].dtype() == y[k].dtype());
    CHECK(dy[k].shape() == y[k].shape());
  }
  for (std::size_t k = 0; k < s.x.size(); ++k) {
    CHECK(dx[k].dtype() == s.x[k].dtype());
    CHECK(dx[k].shape() == s.x[k].shape());
  }
}

// ------------------------------------------------------------------------------------------
// mapping
constexpr std::int64_t slices = 3;

// The slices as one array, with their number as the given axis.
Array stacked(const std::vector<Array>& parts, std::int64_t axis) {
  Shape shape = parts[0].shape();
  shape.insert(shape.begin() + axis, static_cast<std::int64_t>(parts.size()));
  const Many numbers_of_parts = to_numbers(parts);
  const auto element = [&](const Shape& index) {
    Shape inner = index;
    inner.erase(inner.begin() + axis);
    return numbers_of_parts[static_cast<std::size_t>(index[static_cast<std::size_t>(axis)])].at(
        inner);
  };
  return to_array(tabulate(shape, element), parts[0].dtype());
}

// `mapped` says which operands have slices of their own; `last`: the mapped axes are last.
void check_map(const Instance& run, const Function& f, std::size_t mapped, bool last) {
  const std::size_t n = run.shapes.size();
  Arrays x(n);
  std::vector<std::optional<std::int64_t>> axes(n);
  std::vector<Arrays> loop(slices, Arrays(n));
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_mapped = (mapped >> i) & 1;
    std::vector<Array> parts;
    for (std::int64_t s = 0; s < slices; ++s) {
      parts.push_back(run.operand(i, is_mapped ? s : 0));
      loop[static_cast<std::size_t>(s)][i] = parts.back();
    }
    if (is_mapped) axes[i] = last ? parts[0].ndim() : 0;
    x[i] = is_mapped ? stacked(parts, *axes[i]) : parts[0];
  }
  const std::int64_t out_axis = last ? -1 : 0;
  const Arrays got = detail::vmap(callee(f, n), x, axes, {out_axis}, std::nullopt);
  std::vector<Arrays> parts;
  for (const Arrays& args : loop) parts.push_back(f(args));
  for (std::size_t k = 0; k < got.size(); ++k) {
    std::vector<Array> expected;
    for (const Arrays& p : parts) expected.push_back(p[k]);
    const Array all = stacked(expected, last ? expected[0].ndim() : 0);
    const std::string what = "vmap of operands " + std::to_string(mapped) + (last ? ", last" : "");
    CHECK_MESSAGE(got[k].dtype() == all.dtype(), what);
    expect_close(what, to_numbers(got[k]), to_numbers(all), 16 * rounding_error(all.dtype()));
  }
}
// Every choice of mapped operands, their axes in front and behind.
void check_maps(const Instance& run) {
  const std::size_t all = std::size_t{1} << run.shapes.size();
  for (std::size_t mapped = 1; mapped < all; ++mapped) {
    check_map(run, run.row.f, mapped, false);
    check_map(run, run.row.f, mapped, true);
  }
  if (run.row.derivative == Derivative::none || all == 1) return;
  const Function gradients = [f = run.row.f](const Arrays& x) {
    const Smooth s = floating_part(f, x);
    const Arrays y = s.f(s.x);
    Arrays ct;
    for (const Array& a : y) ct.push_back(direction(a.type(), 23));
    return vjp_of(s.f, s.x, ct);
  };
  check_map(run, gradients, all - 1, false);
  check_map(run, gradients, all - 1, true);
}

// ---------------------------------------------------------------------------------------
// everything
void check_derivatives(const Instance& run, const Arrays& x) {
  const Smooth s = floating_part(run.row.f, x);
  check_derivative_types(s);
  const Arrays ct = directions(s.f(s.x), 29);
  check_compiled(
      run, "compiled vjp", [&](const Arrays& v) { return vjp_of(s.f, v, ct); }, s.x, 64);
  if (run.dtype != float64) return;
  check_first("derivative", s, 1e-6);
  if (run.row.derivative == Derivative::smooth) {
    check_first("second derivative", gradient_of(s), 1e-5);
  }
}
void check_instance(const Instance& run) {
  INFO("row ", run.name());
  try {
    const Arrays x = run.operands();
    const Arrays y = run.row.f(x);
    check_values(run, x, y);
    check_program(run, x, y);
    const bool is_first = run.dtype == run.row.dtypes[0];
    if (run.row.derivative != Derivative::none && is_floating(run.dtype)) check_derivatives(run, x);
    if (is_first && run.row.maps) check_maps(run);
  } catch (const std::exception& e) {
    FAIL_CHECK("threw ", std::string(e.what()));
  }
}

}  // namespace

void check_row(const Row& row) {
  std::vector<Shape> shapes;
  for (const In& in : row.in) shapes.push_back(in.shape);
  for (Dtype d : row.dtypes) check_instance({row, d, shapes});
  for (const std::vector<Shape>& variant : row.variants) {
    check_instance({row, row.dtypes[0], variant});
  }
}

}  // namespace reprise::op_table
