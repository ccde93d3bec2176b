// Dict: places that outlive temporaries, reading that makes nothing.
#include "error_text.h"
#include <reprise/nn.h>
#include <reprise/reprise.h>

namespace rp = reprise;
using rp::Array;

namespace {

rp::Dict variables() {
  rp::Dict d;
  d["params"]["kernel"] = rp::ones({2, 2});
  d["params"]["bias"] = rp::zeros({2});
  d["step"] = Array(3);
  return d;
}

}  // namespace

TEST_CASE("a place in a Dict that nobody holds keeps it") {
  auto params = rp::nn::Dense(3).init(rp::random::PRNGKey(0), rp::ones({2}))["params"];
  const Array kernel = params["kernel"];
  CHECK(kernel.shape() == rp::Shape{2, 3});
  const rp::Dict& inner = variables().dict("params");
  CHECK(inner.size() == 2);
  CHECK(variables().dict("params")["bias"].shape() == rp::Shape{2});
  const Array& step = variables().array("step");
  CHECK(step.item<int>() == 3);
  std::size_t seen = 0;
  for (const auto& [key, node] : variables().items()) seen += key.size() + node.index();
  CHECK(seen == 6 + 1 + 4);
}

TEST_CASE("reading a key that is not there makes nothing and names the nearest") {
  rp::Dict d = variables();
  const std::string text = message<rp::TypeError>([&] { return Array(d["parms"]["kernel"]); });
  CHECK_MENTIONS(text, "no such key, got 'parms' where the keys are 'params', 'step'");
  CHECK_MENTIONS(text, "hint: the nearest key is 'params'");
  CHECK_MENTIONS(message<rp::TypeError>([&] { return d["params"]["kernl"].array(); }),
                 "the nearest key is 'kernel'");
  CHECK_MENTIONS(message<rp::TypeError>([&] { return d["other"].dict(); }), "got 'other'");
  CHECK_MENTIONS(message<rp::TypeError>([] { return rp::Dict()["x"].array(); }),
                 "got 'x' where there are no keys");
  CHECK(d.size() == 2);
  CHECK(d.dict("params").size() == 2);
  d["new"];
  d["new"]["deeper"];
  CHECK(d.size() == 2);
}

TEST_CASE("an entry is an operand like any array") {
  rp::Dict p = variables();
  const Array x = rp::ones({3, 2});
  CHECK(rp::matmul(x, p["params"]["kernel"]).shape() == rp::Shape{3, 2});
  const Array y = p["step"] * 2.0 + p["step"];
  CHECK(y.item<double>() == 9);
  const rp::Dict& fixed = p;
  CHECK((fixed["step"] + 1).item<int>() == 4);
}

TEST_CASE("assigning an entry writes what stands there") {
  rp::Dict d = variables();
  d["copy"] = d["params"];
  d["copy"]["bias"] = d["step"];
  CHECK(d.dict("copy")["bias"].item<int>() == 3);
  CHECK(d.dict("params")["bias"].shape() == rp::Shape{2});
  d["params"] = d["params"]["kernel"];
  CHECK(d["params"].array().shape() == rp::Shape{2, 2});
  const rp::Dict part = d["copy"];
  CHECK(part.size() == 2);
  CHECK(&d.nested("copy") == &d.nested("copy"));
  CHECK(d.nested("fresh").size() == 0);
  CHECK_MENTIONS(message<rp::TypeError>([&] { d["step"]["x"] = Array(1); }),
                 "the entry is not a dict, got key 'step'");
}
