// What optimisers keep: arrays in the state under a name and the path of their parameter, and
// counts.
#pragma once

#include "reprise/errors.h"
#include "reprise/optim.h"

#include <string>

namespace reprise::optim {

// state[name] holds one array for each leaf. Reading one that is missing or has another shape than
// the leaf is a TypeError; any_shape leaves the shape to the caller.
Arrays load_moments(const Dict& state, const std::string& name, const NamedLeaves& leaves,
                    bool any_shape = false);
void store_moments(Dict& state, const std::string& name, const NamedLeaves& leaves,
                   const Arrays& values);
Arrays filled_like(const NamedLeaves& leaves, double value, OptionalDtype dtype = std::nullopt);
Arrays cast_moments(Arrays values, OptionalDtype dtype);

Array load_count(const Dict& state, const std::string& name = "count");
Array zero_count();
Array next_count(const Array& count);  // stays at the largest i32

// (1 - decay) * g^order + decay * moment
Arrays update_moments(const Arrays& grads, const Arrays& moments, double decay, int order);
// moment / (1 - decay^count)
Arrays correct_bias(const Arrays& moments, double decay, const Array& count);

// The parameters, or a TypeError when the caller passed none.
const Arrays& needed(const char* op, const std::optional<Arrays>& params);

}  // namespace reprise::optim
