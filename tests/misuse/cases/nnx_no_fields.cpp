// deep error: reprise_visit
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  rp::nnx::Param w;
};
Model model;
