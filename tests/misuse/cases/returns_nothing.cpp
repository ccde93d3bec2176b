// deep error: a transformed function must return its results
rp::checkpoint([](Array) {})(1.0);
