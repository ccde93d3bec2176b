// error: the body takes (Array i, carry) and must return a carry of the same type; i is an Array,
// not an int
Array y = rp::fori_loop(
    0, 3, [](int i, Array v) { return v * i; }, rp::ones({2}));
