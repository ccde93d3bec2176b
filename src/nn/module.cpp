#include "nn/module_state.h"
#include "reprise/ops.h"
#include "reprise/random.h"

namespace reprise::nn {

using detail::ModuleState;

// --------------------------------------------------------------------------------------- identity
ModuleBase::ModuleBase(std::string class_name, std::size_t object_size, std::string name,
                       Location at)
    : state_(std::make_shared<ModuleState>()) {
  state_->class_name = std::move(class_name);
  state_->has_explicit_name = !name.empty();
  state_->name = std::move(name);
  state_->made_at = at;
  state_->serial = detail::next_serial();
  state_->object_size = object_size;
  detail::make_child(state_);
  state_->add_copy(*this);
}
ModuleBase::ModuleBase(const ModuleBase& other)
    : state_(other.state_), is_set_up_(other.is_set_up_) {
  state_->add_copy(*this);
}
ModuleBase::~ModuleBase() { state_->remove_copy(*this); }
ModuleBase& ModuleBase::operator=(const ModuleBase& other) {
  if (this == &other) return *this;
  state_->remove_copy(*this);
  state_ = other.state_;
  is_set_up_ = other.is_set_up_;
  state_->add_copy(*this);
  return *this;
}

std::string ModuleBase::name() const { return state_->name; }
std::vector<std::string> ModuleBase::path() const {
  return detail::scope_of(const_cast<ModuleBase&>(*this))->path;
}
const std::string& ModuleBase::class_name() const { return state_->class_name; }
const Location& ModuleBase::made_at() const { return state_->made_at; }

void ModuleBase::set_name(const std::string& name) {
  const AtUser at(state_->made_at);
  if (state_->scope) {
    fail_with_hint<TypeError>("say named(...) where the module is made",
                              "named: ", state_->class_name, " has the name \"", state_->name,
                              "\" already, got \"", name, "\"");
  }
  state_->name = name;
  state_->has_explicit_name = true;
}

// -------------------------------------------------------------------------------------- variables
Array Variable::value() const { return scope_->get(collection_, name_); }
void Variable::set_value(Operand value) {
  const AtUser at(value.at);
  scope_->put(collection_, name_, value.array);
}

namespace {
detail::Scope& here(const ModuleBase& module) {
  return *detail::scope_of(const_cast<ModuleBase&>(module));
}
}  // namespace

Array ModuleBase::param(const std::string& name, const Initializer& init, const Shape& shape,
                        Dtype dtype, Location at) {
  const AtUser place(at);
  detail::Scope& scope = here(*this);
  detail::reserve(*state_, name, "params", "param");
  if (scope.has_variable("params", name)) {
    const Array& value = scope.get("params", name);
    if (value.shape() != shape) {
      fail_with_hint<TypeError>("the variables were made for another input or another module",
                                "param: \"", name, "\" in ", scope.text(), " must have shape (",
                                join(shape, ", "), "), got (", join(value.shape(), ", "), ")");
    }
    return value;
  }
  if (!scope.is_mutable("params")) scope.missing("param", "params", name);
  const Array key = scope.make_rng("params");
  Array value = init(key, shape, dtype);
  scope.put("params", name, value);
  return value;
}

Array ModuleBase::param(const std::string& name, const detail::InitFunction& init, Location at) {
  const auto make = [&](const Array& key) {
    const InUserCode user;
    return init(key);
  };
  const detail::Scope& scope = here(*this);
  Shape shape;
  if (scope.has_variable("params", name)) {
    const AtUser place(at);
    const Array any_key = random::key(0);
    shape = eval_shape([&](Array key) { return make(key); }, any_key).shape();
  }
  const auto of_key = [&](const Array& key, const Shape&, Dtype) { return make(key); };
  return param(name, Initializer(of_key), shape, float32, at);
}

Variable ModuleBase::variable(const std::string& collection, const std::string& name,
                              const std::function<Array()>& init, Location at) {
  const AtUser place(at);
  detail::Scope& scope = here(*this);
  detail::reserve(*state_, name, collection, "variable");
  if (!scope.has_variable(collection, name)) {
    if (!scope.is_mutable(collection) || !init) scope.missing("variable", collection, name);
    Array value;
    {
      const InUserCode user;
      value = init();
    }
    scope.put(collection, name, std::move(value));
  }
  return {detail::scope_of(*this), collection, name};
}

bool ModuleBase::has_variable(const std::string& collection, const std::string& name) const {
  return here(*this).has_variable(collection, name);
}
Array ModuleBase::get_variable(const std::string& collection, const std::string& name,
                               Location at) const {
  const AtUser place(at);
  return here(*this).get(collection, name);
}
void ModuleBase::put_variable(const std::string& collection, const std::string& name,
                              Operand value) {
  const AtUser place(value.at);
  here(*this).put(collection, name, value.array);
}
bool ModuleBase::is_mutable_collection(const std::string& collection) const {
  return here(*this).is_mutable(collection);
}
Dict ModuleBase::variables() const {
  const detail::Scope& scope = here(*this);
  Dict result;
  for (const auto& [collection, node] : scope.frame->variables.items()) {
    if (const Dict* tree = scope.find(collection)) result[collection] = *tree;
  }
  return result;
}

Array ModuleBase::make_rng(const std::string& stream, Location at) {
  const AtUser place(at);
  return here(*this).make_rng(stream);
}
bool ModuleBase::has_rng(const std::string& stream) const { return here(*this).has_stream(stream); }
bool ModuleBase::is_initializing() const { return here(*this).frame->initializing; }

// ------------------------------------------------------------------------------- values on the way
bool ModuleBase::sow(const std::string& collection, const std::string& name, Operand value) {
  const AtUser place(value.at);
  detail::Scope& scope = here(*this);
  if (!scope.is_mutable(collection)) return false;
  Dict values;
  const Dict* known = scope.find(collection);
  if (known != nullptr && known->contains(name)) {
    values = known->dict(name);
  } else {
    detail::reserve(*state_, name, collection, "sow");
  }
  values[std::to_string(values.size())] = value.array;
  scope.put(collection, name, std::move(values));
  return true;
}

bool ModuleBase::sow(const std::string& collection, const std::string& name, Operand value,
                     const std::function<Array(Array, Array)>& reduce,
                     const std::function<Array()>& init) {
  const AtUser place(value.at);
  detail::Scope& scope = here(*this);
  if (!scope.is_mutable(collection)) return false;
  const bool is_known = scope.has_variable(collection, name);
  if (!is_known) detail::reserve(*state_, name, collection, "sow");
  Array sum;
  {
    const InUserCode user;
    const Array before = is_known ? scope.get(collection, name) : init();
    sum = reduce(before, value.array);
  }
  scope.put(collection, name, std::move(sum));
  return true;
}

Array ModuleBase::perturb(const std::string& name, Operand value, const std::string& collection) {
  const AtUser place(value.at);
  detail::Scope& scope = here(*this);
  if (scope.is_mutable(collection) && !scope.has_variable(collection, name)) {
    detail::reserve(*state_, name, collection, "perturb");
    scope.put(collection, name, zeros_like(value));
  }
  if (!scope.frame->variables.contains(collection)) return value.array;
  return value + scope.get(collection, name);
}

// ------------------------------------------------------------------------------------------ fields
namespace {

template <class T>
const T& the_one_given(const std::string& name, const std::optional<T>& field,
                       const std::optional<T>& argument) {
  if (field.has_value() == argument.has_value()) {
    fail<TypeError>(name, ": it must be given to the layer or to the call, got ",
                    field ? "both" : "neither");
  }
  return field ? *field : *argument;
}

}  // namespace

bool merge_param(const std::string& name, std::optional<bool> field, std::optional<bool> argument) {
  return the_one_given(name, field, argument);
}
std::string merge_param(const std::string& name, const std::optional<std::string>& field,
                        const std::optional<std::string>& argument) {
  return the_one_given(name, field, argument);
}

}  // namespace reprise::nn
