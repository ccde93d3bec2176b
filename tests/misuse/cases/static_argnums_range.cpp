// deep error: static_argnums: the function has no argument with this number
rp::checkpoint(rp::static_argnums<1>([](Array x) { return x; }));
