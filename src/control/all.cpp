#include "control/records.h"

#include <array>

namespace reprise {

std::span<const Primitive* const> control_primitives() {
  static constexpr std::array<const Primitive*, 14> all{&jit_p,
                                                        &closed_call_p,
                                                        &eval_jaxpr_p,
                                                        &custom_jvp_call_p,
                                                        &custom_vjp_call_p,
                                                        &custom_lin_p,
                                                        &scan_p,
                                                        &cond_p,
                                                        &while_p,
                                                        &shard_map_p,
                                                        &checkpointed_scan_p,
                                                        &checkpointed_while_p,
                                                        &checkpointed_tangents_p,
                                                        &checkpointed_reverse_p};
  return all;
}

}  // namespace reprise
