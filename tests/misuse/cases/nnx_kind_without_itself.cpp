// deep error: a kind of variable derives from nnx::VariableKind<itself>
// include: reprise/nnx.h
struct Mine : rp::nnx::Param {
  using Param::Param;
};
rp::nnx::Linear model(2, 2, rp::nnx::Rngs(0));
rp::nnx::state(model, rp::nnx::OfType<Mine>);
