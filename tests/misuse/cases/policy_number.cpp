// error: CheckpointOptions
rp::checkpoint([](Array x) { return x; }, {.policy = 3});
