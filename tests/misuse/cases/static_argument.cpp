// fine
rp::checkpoint(rp::static_argnums<1>([](Array x, auto train) {
  return train ? x : x * 2.0;
}))(1.0, true);
