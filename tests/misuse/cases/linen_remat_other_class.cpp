// deep error: a lift takes a module class, derived from rp::nn::Module
// include: reprise/nn.h
rp::nn::remat<int>();
