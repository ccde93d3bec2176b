// fine
// include: reprise/nn.h
struct MLP : rp::nn::Module<MLP> {
  Array call(Array x) { return rp::nn::Dense(4)(x); }
};
auto RematMLP = rp::nn::remat<MLP>({.policy = rp::checkpoint_policies::dots_saveable});
auto model = RematMLP();
auto params = model.init(rp::random::PRNGKey(0), rp::ones({4}));
Array y = model.apply(params, rp::ones({4}));
rp::nn::remat<MLP>({})();
rp::nn::remat(rp::nn::remat<MLP>(), {.prevent_cse = false})();
