// The groups of a schedule that may still grow, found by what they read.
#pragma once

#include "plan/group.h"

#include <list>
#include <map>

namespace reprise::plan {

class OpenGroups {
 public:
  struct OpenGroup : Group {
    OpenGroup(Group g, std::uint64_t number) : Group(std::move(g)), serial(number) {}
    std::uint64_t serial;     // in the order of opening
    std::size_t indexed = 0;  // loads that are found by their roots
  };
  using Open = std::list<OpenGroup>::iterator;
  using Opens = std::map<std::uint64_t, Open>;  // by serial

  Open begin() { return all_.begin(); }
  Open end() { return all_.end(); }
  bool empty() const { return all_.empty(); }

  Open open(Group g);
  Group take(Open g);      // it is open no more
  void has_grown(Open g);  // to be called after each change
  // The first group with `size` elements and less than `nodes` nodes that reads one of the
  // operands.
  Open reader(const std::vector<Operand>& operands, std::int64_t size, std::size_t nodes);

  // Groups that grew, or were named here, since the last call of take_changed.
  void has_changed(Open g) { changed_.emplace(g->serial, g); }
  void have_changed(Var root);  // all that read it
  Opens take_changed() { return std::exchange(changed_, {}); }

 private:
  std::list<OpenGroup> all_;
  std::uint64_t next_serial_ = 0;
  std::unordered_map<Var, Opens> readers_;  // by root
  std::map<std::pair<Var, std::int64_t>, Opens>
      growing_;  // by root and size: those not known to be full
  Opens changed_;
};

}  // namespace reprise::plan
