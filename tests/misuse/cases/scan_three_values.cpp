// error: must return two values, std::pair(carry, y)
auto out = rp::scan(
    [](Array c, Array x) {
      return std::tuple{c, x, x};
    },
    Array(0.0), rp::ones({3}));
