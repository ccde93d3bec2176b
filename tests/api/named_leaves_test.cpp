#include "reprise/named_leaves.h"

#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace reprise {
namespace {

struct Block {
  Array w;
  std::map<std::string, Array> extra;
  REPRISE_FIELDS(w, extra)
};

TEST_CASE("leaves are named by keys, fields and positions") {
  Dict d;
  d["params"]["it's"] = ones({1});
  const std::tuple tree(d, std::vector<Block>{{ones({2}), {{"a", ones({3})}}}},
                        std::optional<Array>(ones({4})), 5);
  const NamedLeaves leaves = named_leaves(tree);
  std::vector<std::string> names;
  for (const KeyPath& path : leaves.paths) names.push_back(path_text(path));
  CHECK(names == std::vector<std::string>{"0/params/it's", "1/0/w", "1/0/extra/a", "2"});
  CHECK(named_leaves(Array(ones({1}))).paths == std::vector<KeyPath>{{}});
}

TEST_CASE("a tree goes to a Dict and back") {
  const std::vector<Block> tree{{array({1.0}), {{"a", array({2})}}}};
  const Dict dict = to_dict(named_leaves(tree));
  CHECK(dict.dict("0").dict("extra").array("a").item<int>() == 2);
  const std::vector<Block> like{{array({0.0}), {{"a", array({0})}}}};
  const std::vector<Block> back = from_dict(like, dict);
  CHECK(back[0].w.item<float>() == 1);
  CHECK(back[0].extra.at("a").item<int>() == 2);
}

TEST_CASE("names and types that do not fit are errors") {
  Dict dict;
  dict["a"]["b"] = ones({2});
  CHECK(leaf_at(dict, {"a", "b"}).size() == 2);
  auto no_leaf = [&](const KeyPath& path, const char* text) {
    CHECK_THROWS_WITH_AS(leaf_at(dict, path), doctest::Contains(text), TypeError);
  };
  no_leaf({"a"}, "dict: no array with this name, got 'a'");
  no_leaf({"a", "b", "c"}, "got 'a/b/c'");
  no_leaf({"x"}, "got 'x'");
  no_leaf({}, "got ''");
  Dict like;
  like["a"]["b"] = ones({3});
  CHECK_THROWS_WITH_AS(
      from_dict(like, dict),
      doctest::Contains("from_dict: the types of 'a/b' differ, got f32[2] for f32[3]"), TypeError);
  CHECK_THROWS_WITH_AS(to_dict(named_leaves(Array(ones({1})))),
                       doctest::Contains("to_dict: a single array has no name, got f32[1]"),
                       TypeError);
}

}  // namespace
}  // namespace reprise
