// Trees: flatten and put back, paths, Dict, structs.
#include "derivatives.h"

namespace {

using namespace check;

struct Layer {
  Array w, b;
};
struct Net {
  std::vector<Layer> layers;
  std::optional<Array> scale;
  int width = 0;
  std::string name;
  REPRISE_FIELDS(layers, scale, width, name)
};
enum class Kind { a, b };
using Mixed = std::tuple<Array, int, std::map<std::string, std::pair<Array, Kind>>, rp::None>;

Net make_net() {
  return {{{Array(1.0), Array(2.0)}, {Array(3.0), Array(4.0)}}, Array(5.0), 7, "net"};
}

}  // namespace

TEST_CASE("leaves come in order; unflatten puts others in their place") {
  const Net net = make_net();
  const auto [leaves, structure] = rp::tree_flatten(net);
  REQUIRE(leaves.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(leaves[i].item<double>() == static_cast<double>(i) + 1);
  Arrays others;
  for (const Array& a : leaves) others.push_back(a * 10.0);
  const Net scaled = rp::tree_unflatten(structure, others);
  CHECK(scaled.layers[1].b.item<double>() == 40.0);
  CHECK(scaled.scale->item<double>() == 50.0);
  CHECK(scaled.width == 7);
  CHECK(scaled.name == "net");
  others.pop_back();
  CHECK_THROWS_AS(rp::tree_unflatten(structure, others), rp::TypeError);
}

TEST_CASE("tree_map keeps structure, also of two trees") {
  const Net net = make_net();
  const Net twice = rp::tree_map([](const Array& a) { return a * 2.0; }, net);
  CHECK(twice.layers[0].w.item<double>() == 2.0);
  const Net sum = rp::tree_map([](const Array& a, const Array& b) { return a + b; }, net, twice);
  CHECK(sum.layers[1].w.item<double>() == 9.0);
  Net smaller = make_net();
  smaller.scale.reset();
  CHECK_THROWS_AS(rp::tree_map([](const Array& a, const Array&) { return a; }, net, smaller),
                  rp::TypeError);
}

TEST_CASE("paths name every leaf as JAX does") {
  CHECK(rp::tree_paths(make_net(), "net") ==
        std::vector<std::string>{"net.layers[0][0]", "net.layers[0][1]", "net.layers[1][0]",
                                 "net.layers[1][1]", "net.scale"});
  const Mixed mixed{Array(1.0), 3, {{"k", {Array(2.0), Kind::b}}}, rp::none};
  CHECK(rp::tree_paths(mixed) == std::vector<std::string>{"[0]", "[2]['k'][0]"});
  CHECK(rp::tree_leaves(mixed).size() == 2);
}

TEST_CASE("numbers, enums, text and none have no leaves") {
  CHECK(rp::tree_leaves(3).empty());
  CHECK(rp::tree_leaves(Kind::a).empty());
  CHECK(rp::tree_leaves(std::string("text")).empty());
  CHECK(rp::tree_leaves(rp::none).empty());
  CHECK(rp::tree_leaves(std::optional<Array>()).empty());
  CHECK(rp::tree_leaves(std::vector<Array>()).empty());
  CHECK(rp::tree_leaves(Array(1.0)).size() == 1);
}

TEST_CASE("a Dict is read and written by keys") {
  rp::Dict params;
  params["params"]["Dense_0"]["kernel"] = rp::ones({2, 3});
  params["params"]["Dense_0"]["bias"] = rp::zeros({3});
  params["step"] = Array(4);
  const Array kernel = params["params"]["Dense_0"]["kernel"];
  CHECK(kernel.shape() == rp::Shape{2, 3});
  CHECK(params["step"].array().item<int>() == 4);
  CHECK(params.contains("params"));
  CHECK(!params.contains("Dense_0"));
  CHECK(params.size() == 2);
  CHECK(rp::tree_paths(params) == std::vector<std::string>{"['params']['Dense_0']['bias']",
                                                           "['params']['Dense_0']['kernel']",
                                                           "['step']"});
  const rp::Dict& fixed = params;
  CHECK(fixed.dict("params").dict("Dense_0")["bias"].shape() == rp::Shape{3});
  CHECK(fixed["step"].item<int>() == 4);
  rp::Dict copy = params;
  copy["step"] = Array(5);
  CHECK(params["step"].array().item<int>() == 4);
  params["params"] = rp::Dict();
  CHECK(rp::tree_leaves(params).size() == 1);
}

TEST_CASE("a missing key or the wrong kind of entry is a TypeError that names the key") {
  rp::Dict d;
  d["weights"] = Array(1.0);
  d["inner"]["x"] = Array(2.0);
  const rp::Dict& fixed = d;
  auto message = [](auto f) {
    try {
      f();
    } catch (const rp::TypeError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string missing = message([&] { fixed.array("bias"); });
  CHECK(missing.find("'bias'") != std::string::npos);
  CHECK(missing.find("'inner', 'weights'") != std::string::npos);
  CHECK(message([&] { fixed.array("inner"); }).find("not an array") != std::string::npos);
  CHECK(message([&] { fixed.dict("weights"); }).find("not a dict") != std::string::npos);
  CHECK(message([&] { d["weights"]["x"] = Array(1.0); }).find("not a dict") != std::string::npos);
}
