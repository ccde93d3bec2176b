// Policies that decide alike have equal keys, and only those: what is derived from a checkpoint is
// kept by the key.
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;

TEST_CASE("names that look like several names are one") {
  CHECK(policies::save_only_these_names("a", "b").key() ==
        policies::save_only_these_names("a", "b").key());
  CHECK(policies::save_only_these_names("a', 'b").key() !=
        policies::save_only_these_names("a", "b").key());
  CHECK(policies::save_any_names_but_these("a").key() !=
        policies::save_only_these_names("a").key());
  CHECK(policies::offload_dot_with_no_batch_dims("a', 'b", "c").key() !=
        policies::offload_dot_with_no_batch_dims("a", "b', 'c").key());
  const auto offloaded = [](policies::Names saved, policies::Names moved) {
    return policies::save_and_offload_only_these_names({saved, moved, "device", "pinned_host"})
        .key();
  };
  CHECK(offloaded({"a"}, {"b"}) != offloaded({"b"}, {"a"}));
  CHECK(offloaded({"a", "b"}, {}) != offloaded({"a"}, {"b"}));
}

TEST_CASE("a policy made of others has a key made of theirs") {
  const rp::Policy a = policies::save_only_these_names("a"),
                   b = policies::save_only_these_names("b");
  CHECK((a | b).key() == (a | b).key());
  CHECK((a | b).key() != (a & b).key());
  CHECK((!a).key() != a.key());
  CHECK((!(a | b)).key() != ((!a) | b).key());
}

TEST_CASE("a value is saved under the name that the policy has, whatever its letters") {
  const auto saved = [](const rp::Policy& policy) {
    const auto f = rp::checkpoint(
        [](rp::Array x) {
          const rp::Array y = rp::checkpoint_name(rp::sin(x), "a', 'b");
          return rp::sin(rp::sin(y));
        },
        {.policy = policy});
    return rp::saved_residuals(f, rp::ones({3})).size();
  };
  CHECK(saved(policies::save_only_these_names("a', 'b")) == 2);
  CHECK(saved(policies::nothing_saveable) == 1);
}
