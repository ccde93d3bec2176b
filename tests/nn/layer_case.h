// A golden case of a layer function: its value, compiled value and gradients against Flax's.
#pragma once

#include "error_text.h"
#include "flax_golden.h"

#include <cmath>
#include <functional>
#include <string>

namespace reprise {

using LayerFunction = std::function<Array(const Arrays&)>;

// The gradients are those of sum(out_i * cos(0.7 i)) by all floating inputs.
inline void check_layer(const std::string& name, const LayerFunction& f) {
  INFO(name);
  const flax_golden::Json& all = flax_golden::file("layer_cases.json");
  REQUIRE(all.contains(name));
  const flax_golden::Json& c = all[name];
  Arrays in;
  for (const auto& i : c["in"]) in.push_back(flax_golden::array_of(i));
  flax_golden::near(f(in), c["out"], 2e-6);
  flax_golden::near(jit(f)(in), c["out"], 2e-6);
  if (!c.contains("grads")) return;
  auto loss = [&](Arrays x) {
    const Array y = f(x);
    std::vector<float> weights;
    for (int i = 0; i < y.size(); ++i) weights.push_back(static_cast<float>(std::cos(0.7 * i)));
    return sum(y * array(weights, y.shape()));
  };
  const Arrays grads = grad(loss)(in);
  REQUIRE(grads.size() == c["grads"].size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    INFO("gradient " << i);
    flax_golden::near(grads[i], c["grads"][i], 5e-6);
  }
}

}  // namespace reprise
