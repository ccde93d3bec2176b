// The smallest set of values whose removal separates a source from a sink.
#pragma once

#include <cstdint>
#include <vector>

namespace reprise::plan {

// Nodes have capacities; edges have none of their own. Dinic's algorithm.
class MinCut {
 public:
  static constexpr std::int64_t unlimited = std::int64_t{1} << 60;

  explicit MinCut(std::size_t nodes);
  void set_capacity(std::size_t node, std::int64_t capacity);
  void connect(std::size_t from, std::size_t to);
  void from_source(std::size_t node);
  void to_sink(std::size_t node);

  // The nodes of the smallest cut; among equal ones that nearest to the sink. Empty if none
  // separates.
  std::vector<std::size_t> solve();

 private:
  struct Edge {
    std::size_t to;
    std::int64_t left;
  };
  void add(std::size_t from, std::size_t to, std::int64_t capacity);
  bool find_levels();
  std::int64_t push();

  std::size_t in(std::size_t node) const { return 2 * node; }
  std::size_t out(std::size_t node) const { return 2 * node + 1; }
  std::size_t source_, sink_;
  std::vector<Edge> edges_;  // each followed by its reverse
  std::vector<std::vector<std::size_t>> leaving_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace reprise::plan
