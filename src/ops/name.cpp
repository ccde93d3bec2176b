// name[name=...]: the identity, with a label that checkpoint policies can ask for.
#include "ops/elementwise.h"
#include "ops/records.h"

namespace reprise {
namespace {

Types same_type(const Types& in, const Params&) { return in; }
Arrays same_value(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}
Tangents unnamed(const Arrays&, const Tangents& dx, const Arrays&, const Params&) { return dx; }

constexpr ParamRule name_rules[] = {{"name", form::text}};

}  // namespace

constinit const Primitive name_p{.name = "name",
                                 .kind = Kind::name,
                                 .type = same_type,
                                 .eval = same_value,
                                 .tangent = unnamed,
                                 .batch = elementwise::batch,
                                 .param_rules = name_rules,
                                 .arity = 1};

}  // namespace reprise
