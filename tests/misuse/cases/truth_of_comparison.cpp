// error: choose elements with rp::where(condition, a, b), a computation with rp::cond
Array x = 1.0;
if (x > 0) x = -x;
