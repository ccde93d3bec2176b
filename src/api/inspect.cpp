// The programs of a differentiated function, for people to read.
#include "api/flat.h"
#include "api/linear_map.h"
#include "reprise/remat.h"

namespace reprise::detail {

FwdBwd fwd_bwd(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  auto forward = [&](const Arrays& x) {
    const VjpOutputs v = vjp(f, x);
    Arrays out = v.out;
    for (const Residual& r : v.map.residuals()) out.push_back(r.value);
    return out;
  };
  Traced fwd = trace(forward, types_of(args), {.transform = "fwd_bwd", .arg_names = f.arg_names});

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
  Traced bwd = trace(backward, in, {.transform = "fwd_bwd"});
  return {Jaxpr(std::move(fwd.program), std::move(fwd.consts)),
          Jaxpr(std::move(bwd.program), std::move(bwd.consts))};
}

}  // namespace reprise::detail
