#include "ops/device_put.h"

#include "ops/elementwise.h"
#include "ops/records.h"

namespace reprise {
namespace {

// Prints as JAX's tuple with one entry.
struct SpaceParam : OpaqueParam {
  explicit SpaceParam(MemorySpace s) : space(s) {}
  MemorySpace space;
  std::string text() const override {
    return space == MemorySpace::host ? "(MemorySpace.Host,)" : "(MemorySpace.Device,)";
  }
};
Params params_for(MemorySpace space) {
  return {{"copy_semantics", std::string("(ArrayCopySemantics.ALWAYS_COPY,)")},
          {"devices", OpaquePtr(std::make_shared<const SpaceParam>(space))},
          {"srcs", std::string("(None,)")}};
}
MemorySpace space_of(const Params& params) {
  return params.get_opaque<SpaceParam>("devices")->space;
}

Types put_type(const Types& in, const Params& params) {
  Type out = in[0];
  out.memory_space = space_of(params);
  return {out};
}
Arrays put_eval(const Arrays& x, const Params&, const Types& out) {
  return {from_bytes(content(x[0]).elements, out[0])};
}
Tangents put_tangent(const Arrays&, const Tangents& dx, const Arrays&, const Params& params) {
  return {device_put_p.bind1({*dx[0]}, params)};
}
Tangents put_transpose(const Tangents& ct, const Primals&, const Types& in, const Params&) {
  return {device_put_p.bind1({*ct[0]}, params_for(in[0].memory_space))};
}
Params put_parsed(const Params& printed, const Types&, const Types&) {
  const bool host = printed.get<std::string>("devices") == "(MemorySpace.Host,)";
  return params_for(host ? MemorySpace::host : MemorySpace::device);
}

constexpr ParamRule put_rules[] = {
    {"copy_semantics", form::text, ""}, {"devices", form::object}, {"srcs", form::text, ""}};

}  // namespace

constinit const Primitive device_put_p{.name = "device_put",
                                       .kind = Kind::shape,
                                       .type = put_type,
                                       .eval = put_eval,
                                       .tangent = put_tangent,
                                       .transpose = put_transpose,
                                       .batch = elementwise::batch,
                                       .param_rules = put_rules,
                                       .parsed_params = put_parsed,
                                       .arity = 1};

Equation device_put_equation(const Atom& from, Var to, MemorySpace space) {
  return {&device_put_p, params_for(space), {from}, {to}, {}};
}
MemorySpace space_of(const Equation& device_put) { return space_of(device_put.params); }

}  // namespace reprise
