// deep error: derive the struct from nnx::Module, or use nnx::Data<...> for arrays
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  std::tuple<Array, Array> pair;
  REPRISE_FIELDS(pair)
};
Model model;
