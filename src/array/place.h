// Arrays at given places.
#pragma once

#include "array/access.h"

#include <vector>

namespace reprise {

// While it lives on this thread, the first new array of each given type takes the given memory:
// results of an evaluation appear where a plan wants them. Others are allocated as usual.
class PlaceResults {
 public:
  struct Target {
    const Type* type;
    std::byte* memory;
  };
  explicit PlaceResults(std::vector<Target> targets);
  ~PlaceResults();
  PlaceResults(const PlaceResults&) = delete;
  PlaceResults& operator=(const PlaceResults&) = delete;
  static std::byte* take(const Type&);  // null: none waits for this type

 private:
  std::vector<Target> targets_;
  PlaceResults* outer_;
};

// Elements that lie somewhere already, at a place that is theirs alone and that `owner` keeps
// alive; without an owner they must outlive the array.
Array array_at(const std::byte* elements, const Type& type,
               std::shared_ptr<const void> owner = nullptr);

}  // namespace reprise
