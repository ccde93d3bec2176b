// deep error: REPRISE_SUBMODULES lists modules
// include: reprise/nn.h
struct Net : rp::nn::Module<Net> {
  int features = 4;
  REPRISE_SUBMODULES(features)
  Array call(Array x) { return x; }
};
Net().apply({}, rp::ones({2}));
