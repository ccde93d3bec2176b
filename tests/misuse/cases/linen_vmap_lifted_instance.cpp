// deep error: lift the class, not an instance: write rp::nn::remat<MLP>(options)(arguments of MLP)
// include: reprise/nn.h
struct MLP : rp::nn::Module<MLP> {
  Array call(Array x) { return rp::nn::Dense(4)(x); }
};
rp::nn::vmap(rp::nn::remat<MLP>()());
