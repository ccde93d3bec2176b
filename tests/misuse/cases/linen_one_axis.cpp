// fine
// include: reprise/nn.h
auto Layers = rp::nn::vmap<rp::nn::Dense>({.variable_axes = {{"params", 0}},
                                           .split_rngs = {{"params", true}},
                                           .in_axes = 0,
                                           .out_axes = 0});
