// error: write x = x.at(i).set(value)
const Array a = rp::ones({3});
a(rp::slice(0, 2)) = rp::zeros({2});
