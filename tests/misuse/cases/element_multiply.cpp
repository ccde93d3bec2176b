// error: write x = x.at(i).multiply(value)
Array a = rp::ones({3});
a[0] *= 2.0;
