// What the layers share.
#pragma once

#include "reprise/nnx/layers.h"

namespace reprise::nnx::detail {

inline OptionalArray value_of(const OptionalParam& p) {
  return p ? OptionalArray(p->get_value()) : std::nullopt;
}

}  // namespace reprise::nnx::detail
