// fine
// include: reprise/nnx.h
struct Block : rp::nnx::Module {
  rp::nnx::Linear linear{2, 2, rp::nnx::Rngs(0)};
  virtual Array call(Array x) { return linear(x); }
  REPRISE_FIELDS(linear)
};
struct Model : rp::nnx::Module {
  rp::nnx::List<Block> blocks;
  rp::nnx::Dict<rp::nnx::Param> table;
  std::optional<rp::nnx::Param> bias;
  std::shared_ptr<Block> tied;
  rp::nnx::Data<std::vector<Array>> history;
  rp::nnx::Static<std::function<Array(Array)>> f;
  std::vector<int> sizes;
  std::string name;
  Array (*activation)(rp::Operand) = rp::nn::relu;
  REPRISE_FIELDS(blocks, table, bias, tied, history, f, sizes, name, activation)
};
Model model;
