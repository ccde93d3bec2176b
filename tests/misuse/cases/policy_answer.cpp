// deep error: a policy must return bool, rp::Saveable, rp::Recompute, rp::Offloadable or
// std::nullopt
rp::Policy policy = [](const rp::EquationInfo&) { return "yes"; };
