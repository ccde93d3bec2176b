// deep error: in nnx::Static<...>
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  std::function<Array(Array)> f;
  REPRISE_FIELDS(f)
};
Model model;
