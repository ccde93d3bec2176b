// deep error: an Array is not a truth value
rp::checkpoint([](Array x, auto train) { return train ? x : x * 2.0; })(1.0, true);
