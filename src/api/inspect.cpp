// The programs of a differentiated function, for people to read.
#include "api/inspect.h"

#include "api/flat.h"
#include "api/linear_map.h"

namespace reprise::detail {

ForwardProgram trace_forward(const Callee& f, const Arrays& args) {
  return trace_forward(f, args, floating_mask(args));
}

ForwardProgram trace_forward(const Callee& f, const Arrays& args, const std::vector<bool>& active) {
  ForwardProgram result;
  auto forward = [&](const Arrays& x) {
    const VjpOutputs v = vjp(f, x, active);
    result.outputs = v.out.size();
    result.map = v.map;
    Arrays out = v.out;
    for (const Residual& r : v.map.residuals()) out.push_back(r.value);
    return out;
  };
  result.traced =
      trace(forward, leaf_types(args), {.transform = "fwd_bwd", .arg_names = f.arg_names});
  return result;
}

Traced trace_backward(const LinearMapPtr& map) {
  Types in;
  for (const Residual& r : map.residuals()) in.push_back(r.type);
  const std::size_t residuals = in.size();
  for (const Type& t : map.map->out) in.push_back(t);
  auto backward = [&](const Arrays& x) {
    auto filled = std::make_shared<LinearMap>(*map.map);
    for (std::size_t i = 0; i < residuals; ++i) filled->residuals[filled->listed[i]] = x[i];
    const Arrays cts(x.begin() + static_cast<std::ptrdiff_t>(residuals), x.end());
    return LinearMapPtr{std::move(filled)}.transposed(cts, {});
  };
  return trace(backward, in, {.transform = "fwd_bwd"});
}

FwdBwd fwd_bwd(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  const Traced fwd = trace_forward(f, args).traced;
  // As in JAX the residuals of the backward program are those of an evaluation, numbers included.
  const Traced bwd = trace_backward(vjp(f, args).map);
  return {Jaxpr(fwd.program, fwd.consts), Jaxpr(bwd.program, bwd.consts)};
}

}  // namespace reprise::detail
