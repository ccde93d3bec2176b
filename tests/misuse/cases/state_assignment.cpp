// error: call state.set(path, value)
// include: reprise/nnx.h
rp::nnx::Linear model(2, 2, rp::nnx::Rngs(0));
auto state = rp::nnx::state(model);
state["kernel"] = state["bias"];
