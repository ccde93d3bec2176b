#include "reprise/nnx/inspect.h"

#include "nnx/lift.h"

namespace reprise::nnx::detail {

struct InspectCall::Impl {
  Impl(const MakeTarget& make, const std::vector<std::string>& names)
      : target(make()), lift(*target), callee(lift.callee(names)) {
    callee.run = [make](const Arrays& values) {
      const auto own = make();
      return Lift(*own).run(values);
    };
  }
  std::shared_ptr<Target> target;
  Lift lift;
  reprise::detail::Callee callee;
};

InspectCall::InspectCall(const MakeTarget& make, const std::vector<std::string>& names)
    : impl_(std::make_unique<Impl>(make, names)) {}
InspectCall::~InspectCall() = default;
const reprise::detail::Callee& InspectCall::callee() const { return impl_->callee; }
Arrays InspectCall::leaves() const { return impl_->lift.values(); }

}  // namespace reprise::nnx::detail
