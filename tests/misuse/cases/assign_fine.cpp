// fine
Array a = rp::ones({3}), b;
b = a;
b = std::move(a);
b = 2.0;
b += 1.0;
std::vector<Array> all(2);
all[0] = b;
std::pair<Array, Array> two;
std::tie(all[0], all[1]) = two;
b = b.at(0).set(1.0).at(1).add(2.0);
