// The programs of a differentiated function, for people to read.
#include "api/inspect.h"

#include "api/flat.h"
#include "api/linear_map.h"

namespace reprise::detail {

ForwardProgram trace_forward(const Callee& f, const Arrays& args) {
  ForwardProgram result;
  auto forward = [&](const Arrays& x) {
    const VjpOutputs v = vjp(f, x);
    result.outputs = v.out.size();
    Arrays out = v.out;
    for (const Residual& r : v.map.residuals()) out.push_back(r.value);
    return out;
  };
  result.traced = trace(forward, types_of(args), {.transform = "fwd_bwd", .arg_names = f.arg_names});
  return result;
}

FwdBwd fwd_bwd(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  const Traced fwd = trace_forward(f, args).traced;
  const VjpOutputs v = vjp(f, args);
  Types in;
  for (const Residual& r : v.map.residuals()) in.push_back(r.type);
  const std::size_t residuals = in.size();
  for (const Array& y : v.out) in.push_back(y.type());
  auto backward = [&](const Arrays& x) {
    auto map = std::make_shared<LinearMap>(*v.map.map);
    for (std::size_t i = 0; i < residuals; ++i) map->residuals[map->listed[i]] = x[i];
    const Arrays cts(x.begin() + static_cast<std::ptrdiff_t>(residuals), x.end());
    return LinearMapPtr{std::move(map)}.transposed(cts, {});
  };
  const Traced bwd = trace(backward, in, {.transform = "fwd_bwd"});
  return {Jaxpr(fwd.program, fwd.consts), Jaxpr(bwd.program, bwd.consts)};
}

}  // namespace reprise::detail
