#include "reprise/nnx/module.h"

#include "nnx/walk.h"
#include "reprise/errors.h"
#include "reprise/nnx/graph.h"
#include "reprise/program.h"

namespace reprise::nnx {

// What attributes there are is not checked by train and eval: a model may have none of them.
namespace {
std::size_t set_bools(Module& root, const std::string& name, bool value) {
  std::size_t count = 0;
  for (auto& [path, module] : iter_modules(root)) {
    Fields fields;
    module->reprise_visit(fields);
    for (const Field& f : fields.list()) {
      const auto* s = std::get_if<detail::StaticValue>(&f.what);
      if (s == nullptr || !f.key.is_name() || f.key.name() != name) continue;
      if (*s->type->type == typeid(bool)) {
        *static_cast<bool*>(s->address) = value;
      } else if (*s->type->type == typeid(std::optional<bool>)) {
        *static_cast<std::optional<bool>*>(s->address) = value;
      } else {
        continue;
      }
      ++count;
    }
  }
  return count;
}
}  // namespace

void Module::train() {
  set_bools(*this, "deterministic", false);
  set_bools(*this, "use_running_average", false);
}
void Module::eval() {
  set_bools(*this, "deterministic", true);
  set_bools(*this, "use_running_average", true);
}
void Module::set_attributes(const Attributes& attributes, Location at) {
  const AtUser scope(at);
  for (const auto& [name, value] : attributes) {
    if (set_bools(*this, name, value) == 0) {
      fail<TypeError>("set_attributes: no module has a bool member of this name, got '", name,
                      "' for a ", detail::type_name(typeid(*this)));
    }
  }
}

void Module::sow_variable(const std::string& name, const Variable& value, Location at) {
  const AtUser scope(at);
  Fields members;
  reprise_visit(members);
  for (const Field& f : members.list()) {
    if (f.key == Key(name)) {
      fail<TypeError>("sow: the module has a member of this name, got '", name, "'");
    }
  }
  if (!sown_) sown_ = std::make_shared<detail::Sown>();
  sown_->values[name].push_back(value);
}

namespace detail {

std::size_t list_position(std::int64_t index, std::size_t size, Location at) {
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t i = index < 0 ? index + n : index;
  if (i < 0 || i >= n) {
    const AtUser scope(at);
    fail<TypeError>("nnx::List: index out of bounds, got ", index, " for a list of ", size);
  }
  return static_cast<std::size_t>(i);
}

void dict_key_error(const std::string& key, const std::vector<std::string>& keys, Location at) {
  const AtUser scope(at);
  fail<TypeError>("nnx::Dict: no such key, got '", key, "' where the keys are ", join(keys, ", "));
}

}  // namespace detail
}  // namespace reprise::nnx
