// fine
Array x = rp::ones({3});
auto [c, y] = rp::scan([](auto c, auto v) { return std::pair{c, v}; }, 0.0, x);
auto [d, z] = rp::scan([](Array d, Array v) { return std::tuple{d, rp::none}; }, Array(0.0), x);
auto a = rp::fori_loop(
    0, 3, [](auto i, auto v) { return v * i; }, 1.0);
auto b = rp::fori_loop(
    Array(0), x[0], [](Array i, const Array& v) { return v * i; }, x);
auto m = rp::fori_loop(
    0, x[0].astype(rp::int32), [](Array i, Array v) { return v * i; }, x);
auto p = rp::jvp([](Array v) { return v; }, std::tuple{x}, std::tuple{x});
rp::checkpoint([](Array v) { return v; }, {});
rp::CheckpointOptions options;
rp::remat([](Array v) { return v; }, options);
int steps = 0;
rp::scan([steps](Array e, Array v) mutable { return ++steps, std::pair{e, v}; }, Array(0.0), x);
