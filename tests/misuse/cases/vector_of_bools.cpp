// fine
Array y =
    rp::jit([](Array x, std::vector<bool> keep) { return keep[0] ? x : -x; })(1.0, {true, false});
