// Walks over modules: every variable and array reachable from a list of members, each once.
#pragma once

#include "reprise/nnx/state.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace reprise::nnx::detail {

struct Sown {
  std::map<std::string, std::vector<Variable>> values;
};

// A place that holds an array: the box of a variable, or an Array member.
struct Slot {
  Path path;
  std::shared_ptr<Box> box;  // or
  Array* array = nullptr;
  const Array& value() const { return box ? box->value : *array; }
  Leaf leaf() const;
};

// The members of a module in order of their names, with what it has sown.
std::vector<Field> sorted_fields(Module& module);
std::vector<Field> sorted(std::vector<Field> fields);

// All slots in order of their paths; a box or module that was seen before is left out. To
// `key` a description is appended: equal bytes mean equal structure, sharing and static values.
std::vector<Slot> slots_of(std::vector<Field> roots, std::string* key = nullptr);
std::vector<Slot> slots_of(const Module& module, std::string* key = nullptr);

}  // namespace reprise::nnx::detail
