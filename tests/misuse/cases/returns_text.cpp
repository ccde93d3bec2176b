// deep error: a transformed function must return Arrays
rp::checkpoint([](Array) { return std::string("text"); })(1.0);
