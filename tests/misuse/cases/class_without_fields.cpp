// error: list their members with REPRISE_FIELDS(members...)
class Model {
 public:
  explicit Model(int n) : w_(rp::ones({n})) {}
  Array w() const { return w_; }

 private:
  Array w_;
};
auto g = rp::grad([](Model m) { return rp::sum(m.w()); })(Model(3));
