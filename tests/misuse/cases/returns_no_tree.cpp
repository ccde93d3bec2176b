// deep error: not a tree: use Arrays
struct Opaque {
  explicit Opaque(int n) : n(n) {}
  int n;
};
rp::checkpoint([](Array) { return Opaque(1); })(1.0);
