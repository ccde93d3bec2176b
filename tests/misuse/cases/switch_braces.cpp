// error: std::vector<std::function<Array(Array)>>{f, g}
Array y = rp::switch_(1, {[](Array v) { return v; }, [](Array v) { return -v; }}, Array(2.0));
