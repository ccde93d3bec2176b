// fine
auto f = rp::vmap([](Array x, Array y) { return x + y; }, {.in_axes = 0, .out_axes = 0});
Array y = f(rp::ones({2}), rp::ones({2}));
