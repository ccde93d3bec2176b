// deep error: REPRISE_FIELDS must list every member
// include: reprise/nnx.h
struct Base : rp::nnx::Module {
  rp::nnx::Param w{Array(1.0)};
  REPRISE_FIELDS(w)
};
struct Derived : Base {
  rp::nnx::Param b{Array(1.0)};
};
Derived model;
rp::nnx::state(model);
