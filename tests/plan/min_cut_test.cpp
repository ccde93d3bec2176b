// Smallest cuts, against all subsets of small graphs.
#include "plan/min_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using reprise::plan::MinCut;

namespace {

struct Graph {
  std::vector<std::int64_t> capacity;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<std::size_t> sources, sinks;
};

std::vector<std::size_t> solved(const Graph& g) {
  MinCut cut(g.capacity.size());
  for (std::size_t n = 0; n < g.capacity.size(); ++n) cut.set_capacity(n, g.capacity[n]);
  for (const auto& [from, to] : g.edges) cut.connect(from, to);
  for (std::size_t n : g.sources) cut.from_source(n);
  for (std::size_t n : g.sinks) cut.to_sink(n);
  std::vector<std::size_t> nodes = cut.solve();
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// No path from a source to a sink is left without these nodes.
bool separates(const Graph& g, const std::vector<bool>& is_cut) {
  std::vector<bool> seen(g.capacity.size(), false);
  std::vector<std::size_t> open;
  for (std::size_t n : g.sources) {
    if (!is_cut[n]) open.push_back(n);
  }
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    if (seen[n]) continue;
    seen[n] = true;
    for (const auto& [from, to] : g.edges) {
      if (from == n && !is_cut[to]) open.push_back(to);
    }
  }
  return std::none_of(g.sinks.begin(), g.sinks.end(), [&](std::size_t n) { return seen[n]; });
}

std::int64_t least_capacity(const Graph& g) {
  std::int64_t least = MinCut::unlimited;
  for (std::size_t set = 0; set < std::size_t{1} << g.capacity.size(); ++set) {
    std::vector<bool> is_cut;
    std::int64_t sum = 0;
    for (std::size_t n = 0; n < g.capacity.size(); ++n) {
      is_cut.push_back((set >> n) % 2 == 1);
      if (is_cut.back()) sum += g.capacity[n];
    }
    if (sum < least && separates(g, is_cut)) least = sum;
  }
  return least;
}

}  // namespace

TEST_CASE("the narrowest place of a chain is cut, of equal ones that nearest to the sink") {
  CHECK(solved({{5, 2, 7}, {{0, 1}, {1, 2}}, {0}, {2}}) == std::vector<std::size_t>{1});
  CHECK(solved({{3, 3, 3}, {{0, 1}, {1, 2}}, {0}, {2}}) == std::vector<std::size_t>{2});
}

TEST_CASE("two narrow values beat one wide one, and the other way round") {
  const std::vector<std::pair<std::size_t, std::size_t>> fork = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  CHECK(solved({{9, 2, 3, 9}, fork, {0}, {3}}) == std::vector<std::size_t>{1, 2});
  CHECK(solved({{4, 2, 3, 9}, fork, {0}, {3}}) == std::vector<std::size_t>{0});
}

TEST_CASE("nothing separates when every path is unlimited, and nothing need where there is none") {
  CHECK(solved({{MinCut::unlimited, MinCut::unlimited}, {{0, 1}}, {0}, {1}}).empty());
  CHECK(solved({{1, 1}, {}, {0}, {1}}).empty());
}

TEST_CASE("random graphs: the cut separates, and no set of nodes does so for less") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Graph g;
    const std::size_t nodes = 3 + random() % 6;
    for (std::size_t n = 0; n < nodes; ++n) {
      g.capacity.push_back(1 + static_cast<std::int64_t>(random() % 9));
      for (std::size_t to = n + 1; to < nodes; ++to) {
        if (random() % 3 == 0) g.edges.emplace_back(n, to);
      }
    }
    g.sources = {0, 1};
    g.sinks = {nodes - 1};
    std::vector<bool> is_cut(nodes, false);
    std::int64_t sum = 0;
    for (std::size_t n : solved(g)) {
      is_cut[n] = true;
      sum += g.capacity[n];
    }
    INFO("round ", round);
    CHECK(separates(g, is_cut));
    CHECK(sum == least_capacity(g));
  }
}
