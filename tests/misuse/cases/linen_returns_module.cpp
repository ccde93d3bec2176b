// deep error: a lifted method must return Arrays or a tree of them, not modules or variables
// include: reprise/nn.h
struct Net : rp::nn::Module<Net> {
  rp::nn::Dense call(Array) { return rp::nn::Dense(4); }
};
rp::nn::remat<Net>()().init(rp::random::PRNGKey(0), rp::ones({2}));
