// error: list their members with REPRISE_FIELDS(members...)
struct Layer {
  explicit Layer(int n) : w(rp::ones({n})) {}
  Array w;
};
auto g = rp::grad([](auto layer) { return rp::sum(layer.w); })(Layer(2));
