// deep error: nnx transforms do not take bound methods: pass the method itself
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  rp::nnx::Param w{Array(1.0)};
  Array forward(Array x) { return x * w; }
  REPRISE_FIELDS(w)
};
Model model;
auto f = rp::nnx::remat(std::bind_front(&Model::forward, &model));
