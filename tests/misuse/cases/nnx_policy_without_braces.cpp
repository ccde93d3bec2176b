// error: the policy is an option with a name: write nnx::remat(f, {.policy = policy})
// include: reprise/nnx.h
auto g = rp::nnx::remat([](rp::nnx::Linear& m, Array x) { return m(x); },
                        rp::checkpoint_policies::dots_saveable);
