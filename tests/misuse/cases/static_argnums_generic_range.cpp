// deep error: static_argnums: the function has no argument with this number
rp::checkpoint(rp::static_argnums<-2>([](auto x) { return x; }))(1.0);
