// error: CheckpointOptions
rp::checkpoint([](Array x) { return x; }, {.policy = [](int) { return true; }});
