// error: write x = x.at(i).set(value)
Array a = rp::ones({3});
a[0] = 5.0;
