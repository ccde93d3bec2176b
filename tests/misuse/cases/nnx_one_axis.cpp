// fine
// include: reprise/nnx.h
auto f = [](rp::nnx::Linear& m, Array x) { return m(x); };
auto g = rp::nnx::vmap(f, {.in_axes = 0, .out_axes = 0});
auto h = rp::nnx::scan(f, {.in_axes = {0, rp::nnx::Carry}, .out_axes = rp::nnx::Carry});
auto k = rp::nnx::vmap(f, {.in_axes = {std::nullopt, 0}});
