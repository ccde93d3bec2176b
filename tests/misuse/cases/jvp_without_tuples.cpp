// error: rp::jvp(f, std::tuple{x}, std::tuple{t})
Array x = 1.0, t = 1.0;
auto [y, dy] = rp::jvp([](Array v) { return rp::sin(v); }, x, t);
