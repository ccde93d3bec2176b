// Programs under shard_map give JAX's values, gradients, collectives and residuals on four ranks.
#include "base/mesh.h"
#include "dist/programs.h"
#include "program/primitive.h"
#include "test_data.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

using programs::P;
using namespace reprise;
using Json = nlohmann::json;

namespace {

const Json& cases() {
  static const Json all = [] {
    std::ifstream in(golden_path("shard_map_cases.json"));
    REQUIRE(in.good());
    return Json::parse(in);
  }();
  return all["cases"];
}
const Json& case_named(const std::string& name) {
  for (const Json& c : cases()) {
    if (c["name"] == name) return c;
  }
  FAIL("no case " << name);
  return cases();
}

void flatten(const Json& j, std::vector<float>& values, Shape& shape, std::size_t depth = 0) {
  if (!j.is_array()) {
    values.push_back(j.get<float>());
    return;
  }
  if (shape.size() == depth) shape.push_back(static_cast<std::int64_t>(j.size()));
  for (const Json& item : j) flatten(item, values, shape, depth + 1);
}
Array array_of(const Json& j) {
  std::vector<float> values;
  Shape shape;
  flatten(j, values, shape);
  return array(values, shape);
}
Arrays args_of(const Json& c) {
  Arrays args;
  for (const Json& a : c["args"]) args.push_back(array_of(a));
  return args;
}

void check_close(const char* what, const Array& ours, const Json& theirs) {
  const Array wanted = array_of(theirs);
  REQUIRE(ours.shape() == wanted.shape());
  const auto got = ours.to_vector<double>(), want = wanted.to_vector<double>();
  double largest = 1e-30, difference = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    difference = std::max(difference, std::abs(got[i] - want[i]));
  }
  // Four layers lose half of the digits to cancellation: sums in another order show.
  CHECK_MESSAGE(difference <= 4e-6 * largest, what << ": off by " << difference / largest);
}

Array loss_of(const programs::Program& f, const Arrays& args) {
  const Array out = f(args);
  const Array square = out * out;
  return sum(square);
}

// How often collectives are evaluated, scans multiplied out.
void count(const reprise::Program& p, int times, std::map<std::string, int>& counts) {
  for (const Equation& e : p.eqns) {
    if (e.prim->effect.is_shared || std::string(e.prim->name) == "pvary")
      counts[e.prim->name] += times;
    int inside = times;
    if (const Attr* length = e.params.find("length"))
      inside *= static_cast<int>(std::get<std::int64_t>(*length));
    for_each_program(e.params, [&](const ProgramPtr& body) { count(*body, inside, counts); });
  }
}
std::map<std::string, int> counts_of(const Jaxpr& j) {
  std::map<std::string, int> counts;
  count(*j.program(), 1, counts);
  return counts;
}

// JAX 0.12 has a primitive for the derivative of tanh, ours is that of 0.10: (1 - y) and y are kept
// instead of 1 - y^2, and the number 1 becomes a value of each rank, once per evaluation.
struct Tanh {
  int pvarys = 0, residuals = 0;
};
Tanh tanh_of(const std::string& name) {
  if (name == "tensor_parallel_remat") return {2, 0};
  if (name == "data_parallel" || name == "sequence_to_heads") return {1, 1};
  if (name == "tensor_parallel" || name == "two_by_two") return {1, 0};  // y is kept anyway
  return {};
}

// As JAX prints it: the parts of all ranks one after the other along the first axis.
std::string residual_text(const Type& t) {
  Shape shape = t.shape;
  std::int64_t ranks = 1;
  for (std::size_t i = 0; t.varying != nullptr && i < t.varying->mesh->axes.size(); ++i) {
    if ((t.varying->bits >> i & 1u) != 0) ranks *= t.varying->mesh->axes[i].size;
  }
  if (ranks > 1) shape[0] *= ranks;
  return str(long_name(t.dtype), "[", join(shape, ","), "]");
}

}  // namespace

TEST_CASE("values and gradients are those of JAX") {
  if (dist::size() != 4) return;
  for (const auto& [name, f] : programs::all()) {
    const std::string case_name = name;
    CAPTURE(case_name);
    const Json& c = case_named(name);
    const Arrays args = args_of(c);
    const auto run = f;
    check_close("value", run(args), c["out"][0]);
    check_close("compiled value", jit([run](Arrays a) { return run(a); })(args), c["out"][0]);
    const auto loss = [run](Arrays a) { return loss_of(run, a); };
    const Arrays grads = grad(loss)(args);
    const Arrays compiled = jit(grad(loss))(args);
    for (std::size_t i = 0; i < args.size(); ++i) {
      check_close("gradient", grads[i], c["grads"][i]);
      check_close("compiled gradient", compiled[i], c["grads"][i]);
    }
    Arrays ones;
    for (const Array& a : args) ones.push_back(ones_like(a));
    const auto along = jvp(loss, std::tuple{args}, std::tuple{ones}).second;
    const double wanted = c["jvp_of_loss_along_ones"][0].get<double>();
    CHECK(along.item<double>() == doctest::Approx(wanted).epsilon(1e-4));
  }
}

TEST_CASE("collectives are those of JAX, under each policy") {
  if (dist::size() != 4) return;
  for (const auto& [name, f] : programs::all()) {
    const std::string case_name = name;
    CAPTURE(case_name);
    const Json& c = case_named(name);
    const Arrays args = args_of(c);
    const auto run = f;
    const auto program = make_jaxpr([run](Arrays a) { return run(a); })(args);
    const auto gradient = make_jaxpr(grad([run](Arrays a) { return loss_of(run, a); }))(args);
    const auto wanted = c["collectives"].get<std::map<std::string, int>>();
    auto wanted_of_grad = c["collectives_of_grad"].get<std::map<std::string, int>>();
    if (const int more = tanh_of(name).pvarys; more > 0) wanted_of_grad["pvary"] += more;
    CHECK_MESSAGE(counts_of(program) == wanted, program);
    CHECK_MESSAGE(counts_of(gradient) == wanted_of_grad,
                  gradient << "\n"
                           << c["grad_jaxpr"].get<std::string>() << Json(counts_of(gradient))
                           << c["collectives_of_grad"]);
  }
}

TEST_CASE("residuals are those of JAX, per rank") {
  if (dist::size() != 4) return;
  for (const auto& [name, f] : programs::all()) {
    const std::string case_name = name;
    CAPTURE(case_name);
    const Json& c = case_named(name);
    const auto run = f;
    const auto residuals = saved_residuals([run](Arrays a) { return run(a); }, args_of(c));
    std::vector<std::string> ours, theirs;
    for (const SavedResidual& r : residuals) ours.push_back(residual_text(r.type));
    for (const Json& r : c["residuals"]) theirs.push_back(r[0].get<std::string>());
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    std::vector<std::string> more, missing;
    std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                        std::back_inserter(more));
    std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                        std::back_inserter(missing));
    // the divisor of pmean, which JAX keeps, is a number in our backward pass
    if (name == "data_parallel" || name == "two_by_two") std::erase(missing, "float32[1]");
    CHECK_MESSAGE(missing.empty(), "missing " << join(missing, ", "));
    const auto expected = static_cast<std::size_t>(tanh_of(name).residuals);
    CHECK_MESSAGE(more.size() == expected, "more: " << join(more, ", "));
  }
}

TEST_CASE("the body of shard_map prints as JAX prints it") {
  if (dist::size() != 4) return;
  const Json& c = case_named("psum_squares");
  const Arrays args = args_of(c);
  const auto gradient =
      make_jaxpr(grad([](Arrays a) { return loss_of(programs::psum_squares, a); }))(args);
  std::string wanted = c["grad_jaxpr"].get<std::string>(), ours = gradient.str();
  const auto body = [](const std::string& text, std::size_t from) {
    const std::size_t begin = text.find("pvary", from);
    return text.substr(begin, text.find("in (", begin) - begin);
  };
  CHECK(ours.find("psum_invariant[axes=('x',)]") != std::string::npos);
  CHECK(ours.find("{V:x}") != std::string::npos);
  CHECK(body(ours, 0).size() == body(wanted, 0).size());  // the same but for letters
}
