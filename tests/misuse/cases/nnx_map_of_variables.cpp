// deep error: use nnx::Dict<...>
// include: reprise/nnx.h
struct Model : rp::nnx::Module {
  std::map<std::string, rp::nnx::Param> table;
  REPRISE_FIELDS(table)
};
Model model;
