// deep error: nnx::Optimizer needs wrt, which variables it updates
// include: reprise/nnx.h
rp::nnx::Linear model(2, 2, rp::nnx::Rngs(0));
rp::nnx::Optimizer optimizer(model, rp::optim::sgd(0.1));
