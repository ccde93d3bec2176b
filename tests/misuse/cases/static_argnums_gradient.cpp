// deep error: static_argnums: an argument that is differentiated cannot be static
rp::grad<1>(rp::static_argnums<1>([](Array x, Array y) { return x * y; }))(1.0, 2.0);
