// warning: left operand of comma operator has no effect
Array y = rp::mean(rp::ones({2, 3, 4}), (1, 2));
