// deep error: use nnx::List<...>
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  std::vector<rp::nnx::Linear> layers;
  REPRISE_FIELDS(layers)
};
Model model;
