// JAX's RematTest, names and the list of saved residuals.
#include "remat/upstream.h"

#include <map>
#include <sstream>

using namespace upstream;

namespace {

template <class F, class... A>
std::vector<std::string> origins(const F& f, const A&... args) {
  std::vector<std::string> list;
  for (const rp::SavedResidual& r : rp::saved_residuals(f, args...)) list.push_back(r.origin);
  return list;
}
bool starts_with(const std::string& text, const std::string& begin) {
  return text.rfind(begin, 0) == 0;
}

// Factors that depend on no argument: y, z and w have names, u has none.
Array named_factors(Array x) {
  const Array y = rp::checkpoint_name(rp::lax::mul(2.0, 2.0), "y");
  const Array z = rp::checkpoint_name(rp::lax::mul(2.0, 2.0), "z");
  const Array w = rp::checkpoint_name(rp::lax::mul(2.0, 2.0), "w");
  const Array u = rp::lax::mul(2.0, 2.0);
  return ((x * y) * z) * w * u;
}
std::size_t saved_factors(const rp::Policy& policy) {
  return rp::saved_residuals(rp::checkpoint(named_factors, {.policy = policy}), 1.0).size();
}

Array utility(std::pair<Array, Array> x, Array y) {
  const Array z = rp::checkpoint_name(rp::sin(3.0), "z");
  Array p = x.first * x.second;
  p = p * y;
  p = z * p;
  return p * rp::array(std::vector<float>{3});
}

}  // namespace

TEST_CASE(
    "name_saveable_input: the product below a name is saved by its own policy, not as the name") {
  const rp::Policy products = save_prim("mul");
  const auto list = origins(rp::checkpoint(
                                [](Array x) {
                                  x = rp::checkpoint_name(x * x, "foo");
                                  return x * x;
                                },
                                {.policy = products}),
                            RP_ARGS(Array(3.0)));
  REQUIRE(list.size() == 2);
  CHECK(starts_with(list[1], "output of mul from "));  // 0.10.2 looks for the producer only
  const auto saved = origins(rp::checkpoint(
                                 [](Array x) {
                                   x = rp::checkpoint_name(x * x, "foo");
                                   return x * x;
                                 },
                                 {.policy = products | P::save_only_these_names("foo")}),
                             RP_ARGS(Array(3.0)));
  REQUIRE(saved.size() == 2);
  CHECK(starts_with(saved[1], "named 'foo' from "));
}

TEST_CASE("name_pytree: every array of a tree gets the name") {
  using Dict = std::map<std::string, Array>;
  auto f = [](Array x) {
    const Dict named = rp::checkpoint_name(Dict{{"a", x * x}}, "foo");
    return named.at("a") * named.at("a");
  };
  const auto list = origins(rp::checkpoint(f, {.policy = P::save_only_these_names("foo")}),
                            rp::arg("x", Array(3.0)));
  REQUIRE(list.size() == 2);
  CHECK(list[0] == "from the argument x");
  CHECK(starts_with(list[1], "named 'foo' from "));
}

TEST_CASE("name_denylist: 0, 1, 2, 3 names may be saved") {
  CHECK(saved_factors(P::save_any_names_but_these("y", "z", "w")) == 0);
  CHECK(saved_factors(P::save_any_names_but_these("z", "w")) == 1);
  CHECK(saved_factors(P::save_any_names_but_these("w")) == 2);
  CHECK(saved_factors(P::save_any_names_but_these()) == 3);
}

TEST_CASE("name_allowlist: 3, 2, 1, 0 names may be saved") {
  CHECK(saved_factors(P::save_only_these_names("y", "z", "w")) == 3);
  CHECK(saved_factors(P::save_only_these_names("z", "w")) == 2);
  CHECK(saved_factors(P::save_only_these_names("w")) == 1);
  CHECK(saved_factors(P::save_only_these_names()) == 0);
}

TEST_CASE("saved_residuals_utility: constant, arguments by path, named value, product") {
  const std::pair<Array, Array> x{2.0, 3.0};
  const Array y = 4.0;
  const auto list = rp::saved_residuals(utility, RP_ARGS(x, y));
  REQUIRE(list.size() == 6);
  CHECK(list[0].type.shape == rp::Shape{1});
  CHECK(list[0].origin == "from a constant");
  CHECK(list[1].origin == "from the argument x[0]");
  CHECK(list[2].origin == "from the argument x[1]");
  CHECK(list[3].origin == "from the argument y");
  CHECK(starts_with(list[4].origin, "named 'z' from "));
  CHECK(starts_with(list[5].origin, "output of mul from "));
  for (std::size_t i = 1; i < 6; ++i) CHECK(list[i].type.shape.empty());
}

TEST_CASE("saved_residuals_utility_jit: values made inside belong to the jitted function") {
  const std::pair<Array, Array> x{2.0, 3.0};
  const Array y = 4.0;
  const auto list = rp::saved_residuals(rp::jit(utility, {.name = "f"}), RP_ARGS(x, y));
  REQUIRE(list.size() == 6);
  CHECK(list[0].origin == "from a constant");
  CHECK(list[1].origin == "from the argument x[0]");
  CHECK(list[2].origin == "from the argument x[1]");
  CHECK(list[3].origin == "from the argument y");
  CHECK(starts_with(list[4].origin, "output of jitted function 'f' from "));
  CHECK(starts_with(list[5].origin, "output of jitted function 'f' from "));
}
