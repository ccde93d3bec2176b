// deep error: pass nnx::has_aux if it returns std::pair(loss, aux)
// include: reprise/nnx.h
rp::nnx::Linear model(2, 2, rp::nnx::Rngs(0));
rp::nnx::grad([](rp::nnx::Linear& m, Array x) { return std::pair{m(x), x}; })(model, Array(1.0));
