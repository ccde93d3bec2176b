// error: write rp::not_equal(x, y)
Array a = rp::ones({2});
if (a != 1.0) return 1;
