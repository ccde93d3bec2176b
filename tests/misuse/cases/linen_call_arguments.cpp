// deep error: the module has no member function call(...) that takes these arguments
// include: reprise/nn.h
struct MLP : rp::nn::Module<MLP> {
  Array call(Array x) { return rp::nn::Dense(4)(x); }
};
MLP().apply({}, 1, 2, "three");
