// fine
struct Tree {
  Array value;
  std::vector<Tree> below;
};
Tree g = rp::grad([](Tree t) { return rp::sum(t.value); })(Tree{1.0, {}});
