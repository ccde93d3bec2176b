// deep error: REPRISE_FIELDS must list every member
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  rp::nnx::Param w, b;
  REPRISE_FIELDS(w)
};
Model model;
