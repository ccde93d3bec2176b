// The table of derivative rules (g14): primal, jvp, forward and backward texts of each function.
#include "golden/cases.h"

#include <functional>
#include <map>
#include <regex>

namespace {

using namespace golden;
using Function = std::function<Array(const Arrays&)>;

struct Row {
  const char* name;
  Function f;
  Arrays args;
};

const Array x = rp::ones({3});
const Array y = rp::full({3}, 2.0, rp::float32);
const Array M = rp::ones({3, 3});

#define UNARY(name, call)                                   \
  {                                                         \
    name, [](const Arrays& a) { return call(a[0]); }, { x } \
  }
#define BINARY(name, call)                                           \
  {                                                                  \
    name, [](const Arrays& a) { return call(a[0], a[1]); }, { x, y } \
  }

namespace lax = rp::lax;

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      UNARY("sin", lax::sin),
      UNARY("cos", lax::cos),
      UNARY("tan", lax::tan),
      UNARY("exp", lax::exp),
      UNARY("log", lax::log),
      UNARY("log1p", lax::log1p),
      UNARY("expm1", lax::expm1),
      UNARY("tanh", lax::tanh),
      UNARY("logistic", lax::logistic),
      UNARY("sqrt", lax::sqrt),
      UNARY("rsqrt", lax::rsqrt),
      UNARY("square", lax::square),
      {"integer_pow2", [](const Arrays& a) { return lax::integer_pow(a[0], 2); }, {x}},
      {"integer_pow3", [](const Arrays& a) { return lax::integer_pow(a[0], 3); }, {x}},
      {"integer_pow-1", [](const Arrays& a) { return lax::integer_pow(a[0], -1); }, {x}},
      BINARY("pow", lax::pow),
      UNARY("neg", lax::neg),
      UNARY("abs", lax::abs),
      UNARY("sign", lax::sign),
      BINARY("add", lax::add),
      {"add_scalar", [](const Arrays& a) { return a[0] + 1.; }, {x}},
      BINARY("sub", lax::sub),
      BINARY("mul", lax::mul),
      {"mul_scalar", [](const Arrays& a) { return a[0] * 2.; }, {x}},
      BINARY("div", lax::div),
      BINARY("max", lax::max),
      BINARY("min", lax::min),
      UNARY("erf", lax::erf),
      {"reduce_sum", [](const Arrays& a) { return lax::reduce_sum(a[0], {0}); }, {x}},
      {"reduce_max", [](const Arrays& a) { return rp::max(a[0]); }, {x}},
      {"mean", [](const Arrays& a) { return rp::mean(a[0]); }, {x}},
      {"cumsum", [](const Arrays& a) { return rp::cumsum(a[0]); }, {x}},
      {"transpose", [](const Arrays& a) { return rp::transpose(a[0]); }, {M}},
      {"reshape",
       [](const Arrays& a) {
         return a[0].reshape({3, 1});
       },
       {x}},
      {"squeeze",
       [](const Arrays& a) {
         return rp::squeeze(a[0].reshape({3, 1}));
       },
       {x}},
      {"broadcast",
       [](const Arrays& a) {
         return rp::broadcast_to(a[0], {2, 3});
       },
       {x}},
      {"dot vv", [](const Arrays& a) { return rp::dot(a[0], a[1]); }, {x, y}},
      {"dot mv", [](const Arrays& a) { return rp::dot(a[0], a[1]); }, {M, x}},
      {"dot vm", [](const Arrays& a) { return rp::dot(a[0], a[1]); }, {x, M}},
      {"dot mm", [](const Arrays& a) { return rp::dot(a[0], a[1]); }, {M, M}},
      {"convert", [](const Arrays& a) { return a[0].astype(rp::bfloat16); }, {x}},
      {"where",
       [](const Arrays& a) { return rp::where(a[0], a[1], a[2]); },
       {rp::array({true, false, true}), x, y}},
      {"slice", [](const Arrays& a) { return a[0][rp::slice(1, std::nullopt)]; }, {x}},
      {"index", [](const Arrays& a) { return a[0][0]; }, {x}},
      {"dynidx", [](const Arrays& a) { return a[0][a[1]]; }, {x, Array(1)}},
      {"concat",
       [](const Arrays& a) {
         return rp::concatenate({a[0], a[1]});
       },
       {x, y}},
      {"stack",
       [](const Arrays& a) {
         return rp::stack({a[0], a[1]});
       },
       {x, y}},
      {"pad", [](const Arrays& a) { return rp::pad(a[0], 1); }, {x}},
      {"sort", [](const Arrays& a) { return rp::sort(a[0]); }, {x}},
      {"stop_gradient",
       [](const Arrays& a) {
         const Array s = lax::stop_gradient(a[0]);
         return s * a[0];
       },
       {x}},
      {"clip", [](const Arrays& a) { return rp::clip(a[0], 0., 1.); }, {x}},
      {"norm",
       [](const Arrays& a) {
         const Array squares = rp::power(a[0], 2);
         return rp::sqrt(rp::sum(squares));
       },
       {x}},
      UNARY("softmax", rp::nn::softmax),
      UNARY("relu", rp::nn::relu),
      {"logsumexp", [](const Arrays& a) { return rp::logsumexp(a[0]); }, {x}},
      UNARY("gelu", rp::nn::gelu),
      UNARY("silu", rp::nn::silu),
      {"var", [](const Arrays& a) { return rp::var(a[0]); }, {x}},
  };
  return all;
}

struct Texts {
  std::string primal, jvp, forward, backward;
};

// Sections "===== name" with "primal  ...", "jvp     ...", "vjp fwd ...", "grad    ...".
std::map<std::string, Texts> read_sections() {
  std::string text = read_file("jax/g14_primitive_ad_table.out");
  text = std::regex_replace(text, std::regex("np\\.int64\\((-?\\d+)\\)"), "$1");
  std::map<std::string, Texts> sections;
  std::size_t at = text.find("===== ");
  while (at != std::string::npos) {
    const std::size_t end = text.find("===== ", at + 1);
    const std::string section = text.substr(at, end == std::string::npos ? end : end - at);
    const std::string name = section.substr(6, section.find('\n') - 6);
    auto part = [&](const char* from, const char* to) {
      const std::size_t begin = section.find(std::string("\n") + from) + 9;
      const std::size_t stop = to ? section.find(std::string("\n") + to) : section.size() - 1;
      return section.substr(begin, stop - begin);
    };
    sections[name] = {part("primal  ", "jvp     "), part("jvp     ", "vjp fwd "),
                      part("vjp fwd ", "grad    "), part("grad    ", nullptr)};
    at = end;
  }
  return sections;
}

bool is_differentiated(const Array& a) { return rp::is_floating(a.dtype()); }

// f as a function of its floating arguments only.
auto of_floats(const Function& f, Arrays all) {
  return [f, all](Arrays floats) {
    Arrays args = all;
    std::size_t next = 0;
    for (Array& a : args) {
      if (is_differentiated(a)) a = floats[next++];
    }
    return f(args);
  };
}
Arrays floats_of(const Arrays& all) {
  Arrays some;
  for (const Array& a : all) {
    if (is_differentiated(a)) some.push_back(a);
  }
  return some;
}

Texts our_texts(const Row& row) {
  const std::size_t n = row.args.size();
  auto jvp = [&](Arrays all) {
    const Arrays primals(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    const Arrays tangents(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
    return rp::jvp(of_floats(row.f, primals), std::tuple{floats_of(primals)}, std::tuple{tangents});
  };
  auto forward = [&](Arrays p) {
    const auto [out, backward] = rp::vjp(of_floats(row.f, p), floats_of(p));
    Arrays all{out};
    for (const rp::Residual& r : backward.residuals()) all.push_back(r.value);
    return all;
  };
  auto backward = [&](Array ct, Arrays p) {
    const auto [out, back] = rp::vjp(of_floats(row.f, p), floats_of(p));
    return std::get<0>(back(ct));
  };
  Arrays with_tangents = row.args;
  for (const Array& a : floats_of(row.args)) with_tangents.push_back(a);
  const Array out = row.f(row.args);
  return {rp::make_jaxpr([&](Arrays a) { return row.f(a); })(row.args).str(),
          rp::make_jaxpr(jvp)(with_tangents).str(), rp::make_jaxpr(forward)(row.args).str(),
          rp::make_jaxpr(backward)(rp::ones_like(out), row.args).str()};
}

}  // namespace

TEST_CASE("every derivative rule of the table prints as JAX prints it") {
  const std::map<std::string, Texts> sections = read_sections();
  CHECK(sections.size() == rows().size());
  for (const Row& row : rows()) {
    INFO("section " << std::string(row.name));
    const Texts& wanted = sections.at(row.name);
    const Texts ours = our_texts(row);
    CHECK(ours.primal == wanted.primal);
    CHECK(ours.jvp == wanted.jvp);
    CHECK(ours.forward == wanted.forward);
    CHECK(ours.backward == wanted.backward);
  }
}
