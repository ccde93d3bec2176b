// error: must return a carry of the same type
auto y = rp::fori_loop(
    0, 3,
    [](Array i, Array v) {
      return std::pair{v, i};
    },
    rp::ones({2}));
