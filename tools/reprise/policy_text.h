// Checkpoint policies as words of a command line:
//
//   policy ::= term ('|' term)*                       saved if either saves
//   term   ::= factor ('&' factor)*                   saved if both save
//   factor ::= '!' factor | '(' policy ')' | name | name:a,b
//
// The names are those of checkpoint_policies; `none`, which stands alone, is no checkpoint at all.
#pragma once

#include "reprise/policies.h"

#include <span>
#include <string>
#include <vector>

namespace reprise::cli {

// What `--policy` makes of the checkpoints of a program.
struct PolicyChoice {
  enum Kind { as_written, none, given } kind = as_written;
  std::string text = "as written";  // or as it was given
  Policy policy = {};               // when it was given
};
// Throws UsageError that says what is wrong with the text.
PolicyChoice parse_policy(const std::string& text);
std::vector<PolicyChoice> parse_policies(
    const std::vector<std::string>& texts);  // empty: as written

// One name that a policy may begin with, for help and completion.
struct PolicyName {
  const char* name;
  const char* arguments;  // ":NAME,..."; empty: none
  const char* saves;      // what it saves
};
std::span<const PolicyName> policy_names();

}  // namespace reprise::cli
