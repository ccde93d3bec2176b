// error: list their members with REPRISE_FIELDS(members...)
struct Layer {
  explicit Layer(int n) : w(rp::ones({n})) {}
  Array w;
};
struct Model {
  std::vector<Layer> layers;
};
Model m{{Layer(2)}};
auto step = rp::jit(
    rp::value_and_grad([](const Model& model, Array x) { return rp::sum(model.layers[0].w * x); }));
step(m, 2.0);
