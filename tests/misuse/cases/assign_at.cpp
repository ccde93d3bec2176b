// error: write x = x.at(i).set(value)
Array a = rp::ones({3});
a.at(0) = 5.0;
