// error: write x = x.at(i).set(value)
Array a = rp::ones({3}), b = rp::zeros({2});
a(rp::slice(0, 2)) = b;
