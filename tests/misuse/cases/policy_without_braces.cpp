// error: the policy is an option with a name: write rp::checkpoint(f, {.policy = policy})
auto g = rp::checkpoint([](Array x) { return x; }, rp::checkpoint_policies::dots_saveable);
