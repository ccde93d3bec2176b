// error or warning: designator order for field | ISO C++ requires field designators to be specified
// in declaration order
auto g = rp::checkpoint([](Array x) { return x; },
                        {.strict = true, .policy = rp::checkpoint_policies::dots_saveable});
