// error: nnx::Optimizer::update needs the model too: update(model, grads)
// include: reprise/nnx.h
rp::nnx::Linear model(2, 2, rp::nnx::Rngs(0));
rp::nnx::Optimizer optimizer(model, rp::optim::sgd(0.1), rp::nnx::OfType<rp::nnx::Param>);
optimizer.update(rp::nnx::State());
