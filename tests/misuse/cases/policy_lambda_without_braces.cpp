// error: the policy is an option with a name: write rp::remat(f, {.policy = policy})
auto g = rp::remat([](Array x) { return x; },
                   [](const rp::EquationInfo& e) { return e.primitive == "sin"; });
