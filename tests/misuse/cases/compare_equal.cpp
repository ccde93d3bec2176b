// error: write rp::equal(x, y)
Array a = rp::ones({2}), b = a;
bool same = a == b;
