// The core's functions that look at a function take modules, and name their variables.
#include "error_text.h"
#include <reprise/check.h>
#include <reprise/nnx.h>
#include <reprise/report.h>
#include <reprise/reprise.h>

#include <filesystem>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

struct MLP : nnx::Module {
  nnx::List<nnx::Linear> layers;
  nnx::Dropout dropout;
  nnx::BatchNorm norm;
  explicit MLP(const nnx::Rngs& rngs) : dropout(0.5, rngs), norm(4, rngs) {
    for (int i = 0; i < 2; ++i) layers.append(nnx::Linear(4, 4, rngs));
  }
  Array operator()(Array x) {
    for (auto& layer : layers) x = rp::sin(layer(x));
    sow("hidden", x);
    return norm(dropout(x));
  }
  REPRISE_FIELDS(layers, dropout, norm)
};

Array loss(MLP& model, Array x) { return rp::sum(model(x)); }

bool names(const std::vector<rp::SavedResidual>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& r) { return r.origin == "from the argument " + name; });
}

}  // namespace

TEST_CASE("saved residuals name the variables of a module") {
  MLP model{nnx::Rngs(0)};
  const Array x = rp::ones({2, 4});
  const auto named = rp::saved_residuals(loss, RP_ARGS(model, x));
  CHECK(names(named, "model.layers[1].kernel"));
  CHECK(names(rp::saved_residuals(loss, model, x), "args[0].layers[1].kernel"));
  const auto again = rp::saved_residuals(nnx::remat(loss), RP_ARGS(model, x));
  CHECK(names(again, "model.layers[0].kernel"));
  CHECK(names(again, "x"));
  const rp::ResidualReport report = rp::residual_report(nnx::remat(loss), RP_ARGS(model, x));
  CHECK(report.residuals.size() == again.size());
  CHECK(names(rp::saved_residuals([](auto& m, auto y) { return rp::sum(m(y)); }, RP_ARGS(model, x)),
              "model.layers[1].kernel"));
}

TEST_CASE("looking at a function leaves the modules as they are") {
  MLP model{nnx::Rngs(0)};
  const Array x = rp::ones({2, 4});
  const std::string before = nnx::to_string(nnx::state(model));
  rp::saved_residuals(loss, model, x);
  rp::make_jaxpr(loss)(model, x);
  rp::jit(loss).lower(model, x);
  rp::fwd_bwd(loss, model, x);
  CHECK(nnx::to_string(nnx::state(model)) == before);
  CHECK(nnx::pop(model, nnx::OfType<nnx::Intermediate>).empty());
  const MLP& fixed = model;
  CHECK(rp::saved_residuals(loss, fixed, x).size() == rp::saved_residuals(loss, model, x).size());
}

TEST_CASE("make_jaxpr takes modules, methods and variables") {
  nnx::Linear linear(2, 3, nnx::Rngs(0));
  const rp::Jaxpr f =
      rp::make_jaxpr([](nnx::Linear& m, Array x) { return m(x); })(linear, rp::ones({2}));
  CHECK(f.in_types().size() == 3);
  CHECK(f.out_types()[0].shape == rp::Shape{3});
  CHECK(f.eval({rp::ones({3}), rp::ones({2, 3}), rp::ones({2})})[0].to_vector<double>() ==
        std::vector<double>{3, 3, 3});
  const nnx::Param w(Array(2.0));
  const rp::Jaxpr g = rp::make_jaxpr([](const nnx::Param& p, Array x) { return p * x; })(w, 3.0);
  CHECK(g.eval({5.0, 3.0})[0].item<double>() == 15);
  const rp::Jaxpr d = rp::make_jaxpr(
      nnx::grad([](nnx::Linear& m, Array x) { return rp::sum(m(x)); }))(linear, rp::ones({2}));
  CHECK(d.out_types().size() == 2);  // kernel and bias
}

TEST_CASE("modules that share a variable share it in the copy that is looked at") {
  nnx::Linear first(2, 2, nnx::Rngs(0));
  nnx::Linear second = first;
  auto f = [](nnx::Linear& a, nnx::Linear& b, Array x) { return rp::sum(a(x) + b(x)); };
  CHECK(rp::make_jaxpr(f)(first, second, rp::ones({2})).in_types().size() == 3);
  nnx::Linear other = nnx::clone(first);
  CHECK(rp::make_jaxpr(f)(first, other, rp::ones({2})).in_types().size() == 5);
}

TEST_CASE("recomputation is checked, and programs are lowered and reported, for modules") {
  MLP model{nnx::Rngs(0)};
  model.eval();
  const Array x = rp::ones({2, 4});
  const rp::RecomputeCheck check = rp::check_recompute(nnx::remat(loss), model, x);
  CHECK(check.ok);
  CHECK(check.compared > 0);
  const auto compiled = rp::jit(loss).lower(model, x).compile();
  const auto by_nnx = nnx::jit(loss).lower(model, x).compile();
  CHECK(compiled.memory_analysis().argument_bytes == by_nnx.memory_analysis().argument_bytes);
  const std::string page =
      (std::filesystem::temp_directory_path() / "reprise_nnx_report.html").string();
  rp::write_report(compiled, page);
  CHECK(std::filesystem::file_size(page) > 1000);
  rp::write_report({{"core", compiled}, {"nnx", by_nnx}}, page);
  CHECK(std::filesystem::file_size(page) > 1000);
  std::filesystem::remove(page);
}
